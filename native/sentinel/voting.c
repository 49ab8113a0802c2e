#include "voting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "journal.h"
#include "log.h"
#include "verbs.h"

/* A breath: how many datagrams it reads at most, and how long there is none after it. */
enum { BREATH = 64, BREATH_NS = 5 * NS_PER_MS };

static bool path_of(const struct voting *voting, const char *suffix, char *path, size_t size)
{
	if ((size_t)snprintf(path, size, "%s.%s", voting->sentinel->options->socket, suffix) < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static bool read_boot(struct voting *voting)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, voting->boot, sizeof voting->boot - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	voting->boot[length] = '\0';
	voting->boot[strcspn(voting->boot, "\n")] = '\0';
	return true;
}

/* Every line between the first and the last one is a request. False: something is missing or wrong. */
static bool restore_lines(struct voting *voting, FILE *file)
{
	static struct request request;
	struct client nobody = { .source = { .fd = -1 }, .sentinel = voting->sentinel };
	char *line = NULL, run[17] = "", earlier[sizeof voting->boot] = "";
	bool ended = false;
	size_t room = 0;
	ssize_t length;

	if (fscanf(file, "run %16s %63s\n", run, earlier) != 2 || !parse_run(run, &voting->run) || strcmp(earlier, voting->boot) != 0)
		return false;
	while (!ended && !nobody.refused && (length = getline(&line, &room, file)) > 0) {
		ended = strcmp(line, "end\n") == 0;
		if (ended)
			continue;
		nobody.refused = line[length - 1] != '\n' || !line_parse(line, (size_t)length - 1, &request);
		if (!nobody.refused)
			verb_run(&nobody, &request);
	}
	free(line);
	return ended && !nobody.refused;
}

/*
 * A run lasts as long as the promises of a sentinel: from one start of the machine to the next, if nothing of them is lost.
 * Another run is another voter, and has promised nothing.
 */
static bool restore(struct voting *voting)
{
	char path[4096];
	bool whole = false;
	FILE *file;

	if (!path_of(voting, "votes", path, sizeof path) || !read_boot(voting))
		return false;
	file = fopen(path, "re");
	if (file) {
		voting->restoring = true;
		whole = restore_lines(voting, file);
		voting->restoring = false;
		fclose(file);
	} else if (errno != ENOENT) {
		return false;
	}
	if (whole)
		return true;
	if (file)
		log_failure("the promises of an earlier sentinel are not complete, so this is another voter", EBADMSG);
	journal_hold();
	peers_forget(voting);
	primaries_forget(voting);
	votes_forget(voting);
	return getrandom(&voting->run, sizeof voting->run, 0) == (ssize_t)sizeof voting->run && voting_save(voting);
}

bool voting_open(struct sentinel *sentinel)
{
	struct voting *voting = calloc(1, sizeof *voting);

	if (!voting)
		return false;
	voting_init(voting, sentinel);
	sentinel->voting = voting;
	process_between(voting_breathe, sentinel);
	return getrandom(&voting->process, sizeof voting->process, 0) == (ssize_t)sizeof voting->process && restore(voting);
}

static bool write_all(const struct voting *voting, FILE *file)
{
	bool written = fprintf(file, "run %016llx %s\n", (unsigned long long)voting->run, voting->boot) > 0;

	if (written && voting->port)
		written = fprintf(file, "1 heartbeats port=%d\n", voting->port) > 0;
	for (const struct peer *peer = voting->peers; written && peer; peer = peer->next)
		written = peer_write(peer, file);
	for (const struct primary *primary = voting->primaries; written && primary; primary = primary->next)
		written = primary->pending || primary_write(primary, file);
	for (const struct vote *vote = voting->votes; written && vote; vote = vote->next)
		written = vote_write(vote, file);
	return written && fputs("end\n", file) != EOF && !ferror(file);
}

bool voting_save(struct voting *voting)
{
	char path[4096], scratch[4096];
	bool written;
	FILE *file;

	if (voting->restoring)
		return true;
	if (!path_of(voting, "votes", path, sizeof path) || !path_of(voting, "votes.new", scratch, sizeof scratch))
		return false;
	file = fopen(scratch, "we");
	if (!file)
		return false;
	written = write_all(voting, file);
	written = fclose(file) == 0 && written;
	/* It appears complete or not at all. The promise is that of this run, which ends with the machine. */
	return written && rename(scratch, path) == 0;
}

void votes_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;

	client->hears = true;
	primaries_due(voting, monotonic_ns());
	primaries_tell(voting, client);
	votes_tell(voting, client);
	client_reply(client, request, "ok", NULL);
}

int64_t voting_due(struct sentinel *sentinel, int64_t now)
{
	struct voting *voting = sentinel->voting;
	int64_t beats = peers_due(voting, now), silences = votes_due(voting, now), first = beats < silences ? beats : silences, ends;

	voting->news = false;
	ends = primaries_due(voting, now);
	if (voting->news)
		return now;
	return ends < first ? ends : first;
}

void voting_breathe(void *context)
{
	struct sentinel *sentinel = context;
	struct voting *voting = sentinel->voting;
	int64_t now = monotonic_ns();

	if (voting->restoring || now < voting->breathes)
		return;
	peers_read(voting, BREATH);
	peers_due(voting, now);
	primaries_renew(voting, now);
	voting->breathes = monotonic_ns() + BREATH_NS;
}
