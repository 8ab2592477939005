# SPDX-License-Identifier: Apache-2.0

cat >shop.yaml <<'END'
cluster: shop
peers:
  - {name: n1, address: "127.0.0.1:7401", api: "127.0.0.1:7501"}
  - {name: n2, address: "127.0.0.1:7402", api: "127.0.0.1:7502"}
  - {name: n3, address: "127.0.0.1:7403", api: "127.0.0.1:7503"}
END
for node in n1 n2 n3; do
    gaveld -c shop.yaml --node $node --data ./$node --bootstrap 2>$node.log &
done

export GAVEL_CLUSTER=127.0.0.1:7501,127.0.0.1:7502,127.0.0.1:7503
gavel leader --wait 5s                     # n1, n2 or n3
gavel status                               # all nodes, a line each
gavel handover --to n2                     # the old leader has stopped its work before n2 leads
curl -s http://127.0.0.1:7503/leader       # any node knows
gavel elections                            # who stood, who voted for whom, and why not
kill %1 %2 %3; wait                        # ends the nodes; the leader hands over first
