/* The voters of a primary: their names in requests and in the file, and what stays of one version in the next. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "voting.h"

/* No node has this name. */
static const char api_server[] = "API";

bool voter_is_api_server(const struct voter *voter)
{
	return strcmp(voter->node, api_server) == 0;
}

bool run_is(const struct voter *voter, const struct peer *peer)
{
	return voter->run == peer->run && strcmp(voter->node, peer->name) == 0;
}

static bool same(const struct voter *a, const struct voter *b)
{
	return a->run == b->run && strcmp(a->node, b->node) == 0;
}

void electorate_free(struct primary *primary)
{
	for (size_t i = 0; i < primary->voter_count; i++)
		free(primary->voters[i].node);
	primary->voter_count = primary->set_count = 0;
	primary->sets[0].count = primary->sets[1].count = 0;
}

/* Adds a voter to a set, `NODE/RUN`. */
static bool add(struct primary *primary, struct voters *set, const char *text)
{
	const char *slash = strrchr(text, '/');
	struct voter voter = { .node = NULL };
	size_t at = 0;

	if (!slash || slash == text || !parse_run(slash + 1, &voter.run))
		return false;
	voter.node = strndup(text, (size_t)(slash - text));
	if (!voter.node)
		return false;
	while (at < primary->voter_count && !same(&primary->voters[at], &voter))
		at++;
	if (at < primary->voter_count) {
		free(voter.node);
	} else if (at < VOTERS_MAX) {
		primary->sent[at] = never_ns;
		primary->voters[primary->voter_count++] = voter;
	} else {
		free(voter.node);
		return false;
	}
	if (set->count == VOTERS_MAX)
		return false;
	set->list[set->count++] = (uint8_t)at;
	return true;
}

bool electorate_read(struct primary *primary, const struct request *request)
{
	for (size_t i = 0; i < request->count; i++) {
		const struct field *field = &request->fields[i];
		size_t set = strcmp(field->key, "next") == 0 ? 1 : 0;

		if (set == 0 && strcmp(field->key, "voter") != 0)
			continue;
		if (!add(primary, &primary->sets[set], field->value))
			return false;
	}
	primary->set_count = primary->sets[1].count > 0 ? 2 : 1;
	return true;
}

static bool same_set(const struct primary *a, const struct primary *b, size_t set)
{
	if (a->sets[set].count != b->sets[set].count)
		return false;
	for (size_t i = 0; i < a->sets[set].count; i++)
		if (!same(&a->voters[a->sets[set].list[i]], &b->voters[b->sets[set].list[i]]))
			return false;
	return true;
}

bool electorate_same(const struct primary *a, const struct primary *b)
{
	return same_set(a, b, 0) && same_set(a, b, 1);
}

void electorate_follows(struct primary *to, const struct primary *from)
{
	if (!from || from->epoch != to->epoch)
		return;
	for (size_t i = 0; i < to->voter_count; i++)
		for (size_t j = 0; j < from->voter_count; j++)
			if (same(&from->voters[j], &to->voters[i])) {
				to->voters[i].refused = from->voters[j].refused;
				to->sent[i] = from->sent[j];
			}
}

static bool write_set(const struct primary *primary, const struct voters *set, const char *key, FILE *file)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct voter *voter = &primary->voters[set->list[i]];
		char node[3 * NAME_BYTES + 1];

		if (!value_encode(voter->node, node, sizeof node))
			return false;
		fprintf(file, " %s=%s/%016" PRIx64, key, node, voter->run);
	}
	return true;
}

bool primary_write(const struct primary *primary, FILE *file)
{
	char name[3 * NAME_BYTES + 1], slot[3 * NAME_BYTES + 1];

	if (!value_encode(primary->name, name, sizeof name) || !value_encode(primary->slot, slot, sizeof slot))
		return false;
	fprintf(file, "1 primary name=%s slot=%s epoch=%" PRId64 " version=%" PRId64 " timeout=%" PRId64, name, slot, primary->epoch,
		primary->version, primary->timeout_ns / NS_PER_MS);
	if (primary->gone)
		return fprintf(file, " voter=%s/%016d gone=1\n", api_server, 0) > 0;
	if (!write_set(primary, &primary->sets[0], "voter", file) || !write_set(primary, &primary->sets[1], "next", file))
		return false;
	if (primary->deadman)
		fprintf(file, " netns=%d start=%" PRIu64, (int)primary->deadman->process.pid, primary->deadman->process.start);
	for (char **cgroup = primary->freeze ? primary->freeze->halt.cgroups : NULL; cgroup && *cgroup; cgroup++) {
		char path[3 * CGROUP_BYTES + 1];

		if (!value_encode(*cgroup, path, sizeof path))
			return false;
		fprintf(file, " cgroup=%s", path);
	}
	return fputc('\n', file) != EOF;
}
