/* Other nodes, the primaries on this one, and the votes that it has. See docs/adr/0128-fencing.md. */
#ifndef VOTING_H
#define VOTING_H

#include <netinet/in.h>
#include <stdio.h>

#include "client.h"
#include "deadman.h"
#include "freeze.h"
#include "heartbeat.h"
#include "quorum.h"

/* Beats in a time-out: as many may be lost in a row as fit into two thirds of it. */
enum { BEATS = 12 };

/*
 * GONE_MAX: primaries that have ended; a late request must not restore their earlier voters. ENDED_MAX: statements of votes
 * that have ended.
 */
enum { PEERS_MAX = 256, PRIMARIES_MAX = 512, GONE_MAX = 512, VOTES_MAX = 2048, ENDED_MAX = 1024 };

/*
 * Room for datagrams that wait while this process does not run. The kernel doubles the number, and a datagram takes 512 to
 * 2,304 bytes of it. So three of all peers fit, and no more than WAITING_MAX.
 */
enum { RECEIVE_BYTES = 1024 * 1024, WAITING_MAX = 2 * RECEIVE_BYTES / 512 };

/* Cgroups of a pod. */
enum { CGROUPS_MAX = 32, CGROUP_BYTES = 1024 };

/* Another node of the cluster whose sentinel votes for a primary here, or has a primary for which this one votes. */
struct peer {
	struct peer *next;
	char *name;
	struct sockaddr_in6 address;
	uint64_t run;
	uint8_t key[HMAC_KEY_BYTES];
	uint32_t tag; /* see frame_tag() */
	uint64_t process; /* see struct frame */
	int64_t heard; /* when its latest beat was sent, by its own clock */
	int64_t next_beat; /* when the next beat to it is due; 0: now */
};

struct voter {
	char *node; /* or the API server */
	uint64_t run;
	bool refused; /* it answers this epoch no more */
};

/*
 * A pod here that has a slot. The name of a slot contains its incarnation.
 *
 * In a new epoch it is pending until its voters have answered: the request has no reply until then, so that the primary of a
 * healthy cluster is never stopped at the beginning. A pending primary has no consequences.
 */
struct primary {
	struct primary *next;
	char *name, *slot;
	uint64_t number; /* of the slot */
	int64_t epoch, version, timeout_ns;
	size_t voter_count, set_count;
	struct voter voters[VOTERS_MAX];
	int64_t sent[VOTERS_MAX]; /* see serves_until() */
	struct voters sets[2];
	bool serves;
	bool gone; /* the pod is no more; it has no voters */
	bool pending;
	struct asker asker; /* of a pending one */
	int64_t give_up; /* when the request of a pending one is refused */
	int64_t next_alone; /* when to tell again that it has too few answers of nodes; 0: it has enough */
	struct process netns; /* pid 0: none */
	struct deadman *deadman; /* NULL: its packets pass in any case */
	struct freeze *freeze; /* NULL: its processes run in any case */
};

/* A slot whose primary is on another node, in an epoch in which this node is a voter. */
struct vote {
	struct vote *next;
	char *slot, *node;
	uint64_t number; /* of the slot */
	int64_t epoch;
	int64_t timeout_ns; /* 0: this node is no voter any more, and keeps only its statements */
	bool denied; /* the operator has revoked this epoch: it gets no answers, and the statement follows a time-out later */
	int64_t refused; /* the latest epoch of the slot for which it has stated silence; -1: none */
	uint64_t run; /* that of the sentinel on the primary's node */
	int64_t heard; /* when the latest beat with this claim came; before the first one, from when on its silence counts */
	bool suspect; /* a statement will follow unless a beat comes, and clients know it */
	int64_t suspected; /* this process listens for a beat since that time */
	bool overslept; /* the time above was set again, because this process was paused */
	bool stating; /* a statement is being written down; `before` is what counts if that fails */
	int64_t before;
};

struct voting {
	struct source source; /* the socket; fd -1: not open */
	struct sentinel *sentinel;
	uint64_t run, process;
	struct peer *peers;
	struct primary *primaries;
	struct vote *votes;
	char boot[64]; /* distinguishes one start of the machine from the next */
	int port; /* of the socket; 0: it is not open */
	bool restoring; /* the file is being read, and must not be written */
	bool news; /* answers have come since primaries_due() */
	int64_t breathes; /* when voting_breathe() has something to do again */
};

/* Reads the run of this sentinel, and what an earlier sentinel of the same run has promised. False with errno. */
bool voting_open(struct sentinel *sentinel);

/*
 * Writes down what must outlive this process: the electorates that primaries have acknowledged, the votes, and which of
 * them are statements. A caller replies, and sends what depends on it, only after it returns true.
 */
bool voting_save(struct voting *voting);

void heartbeats_verb(struct client *client, const struct request *request);
void peer_verb(struct client *client, const struct request *request);
void unpeer_verb(struct client *client, const struct request *request);
void primary_verb(struct client *client, const struct request *request);
void unprimary_verb(struct client *client, const struct request *request);
void answered_verb(struct client *client, const struct request *request);
void vote_verb(struct client *client, const struct request *request);
void unvote_verb(struct client *client, const struct request *request);
/* Sends the state of each primary and of each statement as if it had just changed. */
void votes_verb(struct client *client, const struct request *request);

/* Sends beats, ends what has no answers, and states silences. Returns the time of the next call. */
int64_t voting_due(struct sentinel *sentinel, int64_t now);

/*
 * Sends and takes heartbeats, and renews the switches of primaries that serve. It adds and removes nothing and touches no process,
 * so it may be called in the middle of anything: see process_between(). It does nothing if that was a moment ago.
 */
void voting_breathe(void *sentinel);

/* Parts of the above. */
void voting_init(struct voting *voting, struct sentinel *sentinel);
void peers_forget(struct voting *voting);
void primaries_forget(struct voting *voting);
void votes_forget(struct voting *voting);
struct peer *peer_find(struct voting *voting, const char *name);
/* Handles datagrams that have arrived. */
void peers_read(struct voting *voting, size_t most);
int64_t peers_due(struct voting *voting, int64_t now);
int64_t primaries_due(struct voting *voting, int64_t now);
/* Renews the switches of those that serve. */
void primaries_renew(struct voting *voting, int64_t now);
int64_t votes_due(struct voting *voting, int64_t now);
bool primary_asks(const struct primary *primary, const struct peer *peer);
int64_t primary_until(const struct primary *primary);
/* Acknowledges pending primaries that have answers, and gives up those that have none. Returns the time of the next call. */
int64_t pending_due(struct voting *voting, int64_t now);
/* Makes a primary pending for the client; the latest request about a slot counts. */
void pending_begin(struct client *client, const struct request *request, struct primary *told);
/* Gives up the request about this pod. */
void pending_end(struct voting *voting, const char *name, const char *reason);
/* Returns the primary in force of a slot, also when it is gone, or of a pod. */
struct primary *primary_find(struct voting *voting, const char *slot);
struct primary *primary_of_pod(struct voting *voting, const char *name);
size_t primaries_count(const struct primary *primary, bool gone);
void primary_unlink(struct voting *voting, struct primary *primary);
void primary_free(struct primary *primary);
/* Returns why the primary does not fit what this sentinel has acknowledged; NULL: it fits. */
const char *primary_misfit(struct voting *voting, const struct primary *told);
/* Puts a primary into force, in place of its earlier version. Returns NULL, or what has failed, with errno. */
const char *primary_acknowledge(struct voting *voting, struct primary *told);
/* Takes the answer of a voter to what was sent then. */
void primary_take(struct primary *primary, size_t voter, int64_t sent);
/* Returns how often the primaries here send beats to this node, ns; INT64_MAX: never. */
int64_t primaries_interval(const struct voting *voting, const struct peer *peer);
/* Fills in the claims of the primaries here that ask this node, after the first `skip`. Returns how many there are in all. */
size_t primaries_claim(const struct voting *voting, const struct peer *peer, size_t skip, struct frame *beat);
void primaries_answered(struct voting *voting, const struct peer *peer, const struct frame *answer);
/* Takes the claims of a beat, and marks those that this node refuses. */
void votes_heard(struct voting *voting, const struct peer *peer, int64_t now, struct frame *frame);
/* Sends the state of each to one client. */
void primaries_tell(const struct voting *voting, struct client *client);
void votes_tell(const struct voting *voting, struct client *client);
/* Reads the voters of a request. False if one is malformed, or if there are too many. */
bool electorate_read(struct primary *primary, const struct request *request);
/* Another version of the same epoch changes nothing about the answers of a voter. `from` NULL: there is none. */
void electorate_follows(struct primary *to, const struct primary *from);
bool electorate_same(const struct primary *a, const struct primary *b);
void electorate_free(struct primary *primary);
bool peer_write(const struct peer *peer, FILE *file);
bool primary_write(const struct primary *primary, FILE *file);
bool vote_write(const struct vote *vote, FILE *file);

/* Values of requests. */
bool parse_run(const char *text, uint64_t *run);
bool run_is(const struct voter *voter, const struct peer *peer);
bool voter_is_api_server(const struct voter *voter);

#endif
