/* SPDX-License-Identifier: Apache-2.0 */

/* Tests of sessions of store objects, by file; each returns how many failed. */
#ifndef TESTS_STORE_CLUSTER_SESSION_TESTS_H
#define TESTS_STORE_CLUSTER_SESSION_TESTS_H

int session_candidates_run(void);
int session_faults_run(void);

#endif
