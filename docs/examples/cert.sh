# SPDX-License-Identifier: Apache-2.0

gavel cert init shop                       # once, not on a node: ca.crt, ca.key, cluster.secret
gavel cert issue n1 --host 10.0.0.1        # makes n1.crt and n1.key; --host: every name and address that clients use
gavel cert issue n2 --host 10.0.0.2
gavel cert issue n3 --host 10.0.0.3,gavel-3.example.org
gavel cert show n1.crt                     # its owner, and when it expires
(umask 077; openssl rand -hex 32 >token)   # for callers of the API; the same on all nodes

install -d n1-etc                          # what goes to /etc/gavel on n1; never ca.key
install -m 600 ca.crt n1.crt n1.key cluster.secret token n1-etc
