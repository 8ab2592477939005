#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stories that are wrong: each must fail, with the line and a reason that says what would be right.
#
#     tests/trace/bad.sh TRACE
set -euo pipefail

trace=${1:?the program that runs stories}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
number=0
failed=0

# Commands that are right come before it; the last one is in line 3.
check() {
    local command=$1 wanted=$2 said code=0
    number=$((number + 1))
    printf '> nodes a b c\n> elect a\n> %s\n' "$command" >"$directory/story.txt"
    said=$("$trace" --rewrite "$directory/story.txt") || code=$?
    if ((code == 1)) && [[ $said == *"story.txt:3: "*"$wanted"* ]]; then
        echo "ok $number - $command"
    else
        failed=1
        printf '%s\n' "$said" "exit code $code; wanted: $wanted" | sed 's/^/# /'
        echo "not ok $number - $command"
    fi
}

cases=(
    'dance'                       'cannot be understood: dance'
    'run 5 minutes'               'cannot be understood'
    'run 5min'                    '"5min" is no length of time; 50ms, 2s and 1h are'
    'until nobody dances'         'cannot be understood'
    'until a dances'              '"dances" is no state of a node to wait for'
    'works'                       'cannot be understood'
    'works within'                'cannot be understood'
    'works within soon'           '"soon" is no length of time'
    'works within 1s a z'         'there is no node "z"'
    'works within 0s b'           'nobody of these works within 0s: a works, b is follower in term 1, c is follower in term 1'
    'progress z'                  'cannot be understood'
    'progress a z'                'there is no node "z"'
    'set b'                       'set what? election_min=400 is a setting'
    'set b election_min'          '"election_min" is no setting; election_min=400 is one'
    'set b election_min=soon'     '"election_min=soon" is no setting'
    'set b patience=3'            '"patience=3" is no setting'
    'clock b'                     'is no rate of a clock'
    'clock b fast'                '"fast" is no rate of a clock; 900ppm, -900ppm and rate=+900ppm are'
    'clock b rate=+9000000ppm'    'is no rate of a clock'
    'disk b'                      'a disk can hang 1 write, resume, batch, and batch off'
    'disk b hang'                 'how many writes? disk a hang 1 write'
    'disk b hang many writes'     'how many writes?'
    'disk b resume'               'no write of b hangs'
    'disk b batch on'             'a disk can'
    'bandwidth a->b'              'cannot be understood'
    'bandwidth a->b 5'            '"5" is no bandwidth; 500B/s, 100kB/s, 1MB/s and off are'
    'bandwidth a->b fast'         '"fast" is no bandwidth'
    'bandwidth a-b 5kB/s'         '"a-b" is no link; a->b is one, and a is all of a'
    'jitter a->b 5'               '"5" is no length of time'
    'jitter z 5ms'                '"z" is no link'
    'session p at a'              '"p" is no program; A to Z are'
    'session P'                   'P is connected to no node yet; say at which'
    'session P at z'              'there is no node "z"'
    'session P at a ttl=long'     '"long" is no length of time'
    'alive P at a'                'P has no session'
    'candidate P jobs at a'       'P has no session'
    'note P jobs at a'            'which note? note P jobs key=value'
    'note P jobs k=1 epoch=x at a' '"epoch=x" is no epoch; epoch=5 is one'
    'leader P at a'               'cannot be understood'
    'watch group jobs'            'at which node? watch group jobs at b'
    'order a'                     'order what? order a transfer to b'
    'order a dance'               '"dance" is no order; transfer, step-down, add, remove, promote and demote are'
    'order a transfer to'         'whom? order a transfer to b'
    'order a transfer to z'       '"z" is no node; a to i are'
    'order a remove'              'whom? order a remove b'
    'order a remove b forced'     '"forced" cannot be said of this order'
    'order a transfer within'     '"within" cannot be said of this order'
    'order a transfer within soon' '"soon" is no length of time'
    'order a transfer to b'       'the nodes have no names to order by; say nodes a b c names=yes'
    'order z step-down'           'cannot be understood'
    'join'                        'who joins? join d'
    'join a'                      '"a" is no node that can join'
    'join d term=1 vote'          '"vote" is nothing on a disk'
    'join d colour=red'           '"colour" is nothing on a disk; term, vote, commit, log and directory are'
)
echo "1..$((${#cases[@]} / 2))"
for ((i = 0; i < ${#cases[@]}; i += 2)); do check "${cases[i]}" "${cases[i + 1]}"; done
exit "$failed"
