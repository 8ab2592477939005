# SPDX-License-Identifier: Apache-2.0

api=http://127.0.0.1:7501                          # any node

curl -s $api/leader                                # {"leader_id":"n3","leader_address":…,"term":1}
curl -s $api/status                                # this node, and what it knows about the others
curl -s $api/elections?limit=1                     # who stood, who voted for whom
curl -s $api/metrics | grep gavel_current_term     # for Prometheus
curl -s -L $api/transfer -d '{"target_leader_id":"n2"}'   # -L: follow the redirect to the leader
curl -s --max-time 1 "$api/events?after=0" || true  # past events, then new ones; here for a second
