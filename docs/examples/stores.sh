# SPDX-License-Identifier: Apache-2.0

export GAVEL_MYSQL_OPTIONS=my.cnf                # user and password, below [client]
export GAVEL_STORE=mysql://127.0.0.1:3306/app

gavel store ping                                 # whether it answers, how fast, which presets (sets of times) fit
gavel check --candidates 3                       # the load of three candidates
gavel run --group nightly --id web-1 -- sleep 60 &
gavel leader --group nightly --wait 5s           # web-1
kill %1
