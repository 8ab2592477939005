/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every way in which a call of gavel can end. One map gives the code, the
 * name and the text; the codes are those of the HTTP API, so that an error has
 * the same code and name everywhere.
 *
 * 4001 to 4006 are the codes of an election; everything else starts at 4100.
 */
#ifndef GAVEL_STATUS_H
#define GAVEL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
#define GAVEL_STATUS_MAP(X)                                                                                   \
    X(OK,                          0, "success")                                                              \
    X(ERR_ELECTION_FAILED,      4001, "the election ended without a leader")                                  \
    X(ERR_NO_LEADER,            4002, "the group has no leader at the moment")                                \
    X(ERR_LEADER_TRANSFER_FAILED, 4003, "the leader did not hand over")                                       \
    X(ERR_SPLIT_BRAIN,          4004, "two leaders were seen at once")                                        \
    X(ERR_TERM_STALE,           4005, "the epoch is older than the newest one")                               \
    X(ERR_VOTE_DENIED,          4006, "the vote was denied")                                                  \
    X(ERR_INVALID,              4100, "an argument is not valid")                                             \
    X(ERR_NO_MEMORY,            4101, "out of memory")                                                        \
    X(ERR_BUDGET,               4102, "the times of the settings do not add up")                              \
    X(ERR_STATE,                4103, "the call is not possible in the current state")                        \
    X(ERR_ID_IN_USE,            4104, "another live candidate uses this id")                                  \
    X(ERR_CONFLICT,             4105, "another candidate was faster")                                         \
    X(ERR_NOT_HOLDER,           4106, "the mandate is held by someone else")                                  \
    X(ERR_NOT_FOUND,            4107, "not found")                                                            \
    X(ERR_TIMEOUT,              4108, "timed out")                                                            \
    X(ERR_STORE_UNAVAILABLE,    4109, "the store cannot be reached")                                          \
    X(ERR_STORE_DENIED,         4110, "access to the store was denied")                                       \
    X(ERR_STORE_FULL,           4111, "the store has no room left")                                           \
    X(ERR_STORE_DAMAGED,        4112, "the store is damaged or was replaced")                                 \
    X(ERR_STORE_TOO_NEW,        4113, "the store was written by a newer gavel")                               \
    X(ERR_STORE_UNSUPPORTED,    4114, "this store cannot be used")                                            \
    X(ERR_STOPPED,              4115, "the candidate has stopped")                                            \
    X(ERR_OVERRUN,              4116, "the work had not stopped by the deadline")                             \
    X(ERR_IO,                   4117, "an input or output operation failed")                                  \
    X(ERR_DONE,                 4118, "the work of this group is done for good")                              \
    X(ERR_NOT_LEADER,           4119, "this node does not lead; another one does")                            \
    X(ERR_DENIED,               4120, "the caller is not allowed to do this")                                 \
    X(ERR_PEER_REFUSED,         4121, "one node refused the other")                                           \
    X(ERR_SESSION_GONE,         4122, "the session is not open, or has ended")                                \
    X(ERR_FORGOTTEN,            4123, "changes that old are no longer kept")                                  \
    X(ERR_TOO_LARGE,            4124, "a value is larger than the limit")
/* clang-format on */

#define GAVEL_STATUS_ENUM(name, code, text) GAVEL_##name = code,
enum gavel_status { GAVEL_STATUS_MAP(GAVEL_STATUS_ENUM) };
#undef GAVEL_STATUS_ENUM

/* A status that the caller must look at. */
#if defined(__GNUC__)
#define GAVEL_CHECKED __attribute__((warn_unused_result))
#else
#define GAVEL_CHECKED
#endif

/* What the shared library exports; everything else of it stays hidden. */
#if defined(__GNUC__)
#define GAVEL_API __attribute__((visibility("default")))
#else
#define GAVEL_API
#endif

/* "OK", "ERR_NO_LEADER", …; "ERR_UNKNOWN" for an unknown number. Never NULL. */
GAVEL_API const char *gavel_status_name(enum gavel_status status);

/* A short text without a full stop, such as "the group has no leader at the moment". Never NULL. */
GAVEL_API const char *gavel_status_text(enum gavel_status status);

/*
 * What went wrong, in words for a person: the thing, the reason and the next
 * step. Filled in only by a call that fails; calls take NULL for "not wanted".
 */
struct gavel_error {
    enum gavel_status status;
    char message[512];
};

#ifdef __cplusplus
}
#endif

#endif
