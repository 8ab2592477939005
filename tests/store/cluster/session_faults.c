/* SPDX-License-Identifier: Apache-2.0 */

#include "session_faults.h"
#include "session_bench.h"

int session_faults_run(void) { return 0; }
