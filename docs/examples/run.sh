# SPDX-License-Identifier: Apache-2.0

job='echo "$GAVEL_CANDIDATE works with epoch $GAVEL_EPOCH"; exec sleep 60'

gavel run --group nightly --id web-1 -- sh -c "$job" &
gavel leader --group nightly --wait 5s         # web-1
gavel run --group nightly --id web-2 -- sh -c "$job" &
until gavel candidates --group nightly | grep -q web-2; do sleep 0.1; done

kill -9 %1                                     # without a chance to clean up
sleep 0.5
gavel leader --group nightly                   # web-2: it took over a few milliseconds after the kill
kill %2                                        # stops the command, gives up the lead and ends
