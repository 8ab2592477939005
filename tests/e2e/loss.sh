#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leaders that are lost, and cold starts. By hand, with the real preset:
#
#     COLD_STARTS=100 COLD_OBSERVATION=15000 … \
#         tests/e2e/loss.sh test_a_cold_start_by_frugal_elects_the_lowest_id_in_any_order
source "$SOURCE_ROOT/tests/e2e/lib.sh"
source "$SOURCE_ROOT/tests/e2e/run/run_lib.sh"
source "$SOURCE_ROOT/tests/e2e/loss_lib.sh"

test_killing_the_elector_is_told_as_a_loss() { killing_the_elector_is_told_as_a_loss; }
test_killing_the_guard_is_told_as_a_loss() { killing_the_guard_is_told_as_a_loss; }
test_a_handover_is_no_loss_and_waits_for_nothing() { a_handover_is_no_loss_and_waits_for_nothing; }

test_a_cold_start_by_frugal_elects_the_lowest_id_in_any_order() { a_cold_start_by_frugal_elects_the_lowest_id_in_any_order; }

run_tests "$@"
