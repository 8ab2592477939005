# SPDX-License-Identifier: Apache-2.0

gavel elect --group nightly --id web-1 >web-1.log &   # one line of JSON per event
gavel elect --group nightly --id web-2 >web-2.log &

gavel leader --group nightly --wait 5s                # web-1 or web-2
gavel status --group nightly                          # its epoch, since when it leads, time left on its lease
gavel candidates --group nightly                      # who takes part
gavel handover --group nightly                        # the other one leads now
kill %1 %2                                            # both leave in order
