# SPDX-License-Identifier: Apache-2.0

cat >shop.yaml <<'END'
cluster: shop
peers:
  - {name: n1, address: "127.0.0.1:7401", api: "127.0.0.1:7501"}
  - {name: n2, address: "127.0.0.1:7402", api: "127.0.0.1:7502"}
  - {name: n3, address: "127.0.0.1:7403", api: "127.0.0.1:7503"}
END
for i in 1 2 3; do
    gaveld -c shop.yaml --node n$i --data ./n$i --clients 127.0.0.1:760$i --bootstrap 2>n$i.log &
done
export GAVEL_CLUSTER=127.0.0.1:7501,127.0.0.1:7502,127.0.0.1:7503
gavel leader --wait 5s >/dev/null

# The cluster is a store like any other: for gavel run, gavel elect and every program with libgavel.
export GAVEL_STORE=gavel://127.0.0.1:7601,127.0.0.1:7602,127.0.0.1:7603
gavel run --group nightly --id web-1 -- sleep 60 &
gavel leader --group nightly --wait 5s                      # web-1

# Other languages use HTTP. Here the node keeps the session alive, for a minute; a real program does that itself.
curl -sN 127.0.0.1:7501/groups/reports/campaign -d '{"candidate": "py-1", "keepalive": "stream"}' >py-1.events &
until grep -q 'event: elected' py-1.events; do sleep 0.1; done
curl -s 127.0.0.1:7502/groups/reports/leader; echo          # any node knows: py-1, and its epoch
gavel note put reports cursor 42                            # where the next leader continues, whenever it comes
gavel groups                                                # both elections, a line each
kill %5                                                     # its session expires after 2 s: reports has no leader
kill %4 %1 %2 %3; wait                                      # ends the command and the nodes
