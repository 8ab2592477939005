# SPDX-License-Identifier: Apache-2.0

api=http://127.0.0.1:7501                          # any node
group=$api/groups/nightly

curl -sN $group/campaign -d '{"candidate":"a"}' >a.events &   # a candidate; this stream brings its events
until grep -q elected a.events; do sleep 0.1; done            # event: elected, with the epoch
epoch=$(sed -n 's/.*"epoch":\([0-9]*\).*/\1/p' a.events)
session=$(sed -n 's/.*"session":"\([0-9a-f]*\)".*/\1/p' a.events)
curl -s $group/keepalive -d "{\"session\":\"$session\"}"      # it is alive; repeat within ttl_ms, at any node

curl -s $group/leader                              # {"group":"nightly","leader":"a",…,"epoch":…}
curl -s $group/leader/name                         # {"name":"a"}
curl -s -o b.json -w '%{http_code}\n' "$group/leader?candidate=b"   # 503: b does not lead
curl -s -X PUT $group/notes/done -H "Epoch: $epoch" -d 'up to line 17'   # refused once another leads
curl -s $group/notes/done                          # up to line 17
curl -s "$api/groups?prefix=night"                 # a page of groups

curl -s $group/resign -d "{\"session\":\"$session\"}"   # its work has stopped: the next one leads within milliseconds
