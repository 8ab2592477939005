/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions of store objects while nodes die, freeze and come back. */
#ifndef TESTS_STORE_CLUSTER_SESSION_FAULTS_H
#define TESTS_STORE_CLUSTER_SESSION_FAULTS_H

int session_faults_run(void); /* returns how many failed */

#endif
