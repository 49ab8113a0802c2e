/* The state of the sentinel, passed to all its parts. */
#ifndef SENTINEL_H
#define SENTINEL_H

#include <stdbool.h>
#include <stdint.h>

#include "awake.h"
#include "line.h"
#include "loop.h"
#include "message.h"
#include "process.h"

enum { NAME_BYTES = 256, DEADLINE_MS_MAX = 24 * 60 * 60 * 1000, PID_MAX = 4194304 };

struct options {
	const char *socket, *log, *nsrun, *cgroup, *memory_dir;
	int64_t memory_bytes;
	bool foreground;
};

struct sentinel {
	struct loop loop;
	const struct options *options;
	int64_t started_unix_ns;
	uint64_t serials; /* number of connections so far */
	struct source *door, *signals;
	struct source *exits; /* NULL: this node has none */
	struct client *clients;
	struct watch *watches;
	struct stop *stops;
	struct halt *halts; /* of stops and of fences */
	struct spawn *spawns;
	struct killing *killings;
	struct voting *voting;
	struct awake awake;
	/*
	 * The sentinel is terminating: it accepts no connections and starts no spawns or stops, but running spawns may
	 * finish.
	 */
	bool ending;
};

/*
 * The addressee of a deferred reply. The connection may be gone by then, and another one may have its place in memory.
 */
struct asker {
	uint64_t serial;
	char id[ID_DIGITS + 1];
};

#endif
