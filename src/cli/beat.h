/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command that `gavel demo` and `gavel bench` let `gavel run` run: this
 * program once more, started by a first argument that is no command of it.
 *
 *     gavel __beat WITNESS MEMBER EVERY
 *
 * It maps the witness (a descriptor that it inherits), looks whether the one
 * before it is gone, writes down that it begins, and then beats every so many
 * microseconds; 0: never again. SIGTERM ends it in order.
 */
#ifndef CLI_BEAT_H
#define CLI_BEAT_H

#define BEAT_WORD "__beat"

/* The whole life of the process; argv[1] is BEAT_WORD. */
int beat_main(int argc, char **argv);

#endif
