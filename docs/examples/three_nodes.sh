# SPDX-License-Identifier: Apache-2.0

cat >shop.yaml <<'END'
cluster: shop
peers:
  - {name: n1, address: "127.0.0.1:7401", api: "127.0.0.1:7501"}
  - {name: n2, address: "127.0.0.1:7402", api: "127.0.0.1:7502"}
  - {name: n3, address: "127.0.0.1:7403", api: "127.0.0.1:7503"}
END
for i in 1 2 3; do gaveld -c shop.yaml --node n$i --data ./n$i --clients 127.0.0.1:760$i --bootstrap 2>n$i.log & done
gavel leader --cluster 127.0.0.1:7501,127.0.0.1:7502,127.0.0.1:7503 --wait 10s    # n1, n2 or n3

export GAVEL_STORE=gavel://127.0.0.1:7601,127.0.0.1:7602,127.0.0.1:7603
gavel run --group nightly --id web-1 -- sleep 60 &
gavel leader --group nightly --wait 10s                                           # web-1
kill %4 %1 %2 %3; wait                                                            # ends the command and the nodes
