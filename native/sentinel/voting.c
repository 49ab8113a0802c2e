#include "voting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "log.h"
#include "verbs.h"

static bool path_of(const struct voting *voting, const char *suffix, char *path, size_t size)
{
	if ((size_t)snprintf(path, size, "%s.%s", voting->sentinel->options->socket, suffix) < size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

/*
 * A run lasts as long as the promises of a sentinel: from one start of the machine to the next, since the directory of the
 * socket is a tmpfs there. Another run is another voter.
 */
static bool read_run(struct voting *voting)
{
	char path[4096], text[17] = "";
	int fd;

	if (!path_of(voting, "run", path, sizeof path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0) {
		ssize_t length = read(fd, text, 16);

		close(fd);
		if (length == 16 && parse_run(text, &voting->run))
			return true;
	}
	if (getrandom(&voting->run, sizeof voting->run, 0) != (ssize_t)sizeof voting->run)
		return false;
	snprintf(text, sizeof text, "%016llx", (unsigned long long)voting->run);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	if (write(fd, text, 16) != 16) {
		close(fd);
		return false;
	}
	return close(fd) == 0;
}

/* Every line of the file is a request. */
static bool restore(struct voting *voting)
{
	static struct request request;
	struct client nobody = { .source = { .fd = -1 }, .sentinel = voting->sentinel };
	char path[4096], *line = NULL;
	size_t room = 0;
	ssize_t length;
	FILE *file;

	if (!path_of(voting, "votes", path, sizeof path))
		return false;
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT;
	voting->restoring = true;
	while ((length = getline(&line, &room, file)) > 0)
		if (line[length - 1] == '\n' && line_parse(line, (size_t)length - 1, &request))
			verb_run(&nobody, &request);
	voting->restoring = false;
	free(line);
	fclose(file);
	return true;
}

bool voting_open(struct sentinel *sentinel)
{
	struct voting *voting = calloc(1, sizeof *voting);

	if (!voting)
		return false;
	voting_init(voting, sentinel);
	sentinel->voting = voting;
	return read_run(voting) && restore(voting);
}

bool voting_save(struct voting *voting)
{
	char path[4096], scratch[4096];
	bool written = true;
	FILE *file;

	if (voting->restoring)
		return true;
	if (!path_of(voting, "votes", path, sizeof path) || !path_of(voting, "votes.new", scratch, sizeof scratch))
		return false;
	file = fopen(scratch, "we");
	if (!file)
		return false;
	for (const struct primary *primary = voting->primaries; written && primary; primary = primary->next)
		written = primary_write(primary, file);
	for (const struct vote *vote = voting->votes; written && vote; vote = vote->next)
		written = vote_write(vote, file);
	/* It appears complete or not at all. The promise is that of this run, which ends with the machine. */
	written = fclose(file) == 0 && written;
	return written && rename(scratch, path) == 0;
}

void votes_verb(struct client *client, const struct request *request)
{
	struct voting *voting = client->sentinel->voting;

	client->hears = true;
	primaries_tell(voting, client);
	votes_tell(voting, client);
	client_reply(client, request, "ok", NULL);
}

int64_t voting_due(struct sentinel *sentinel, int64_t now)
{
	struct voting *voting = sentinel->voting;
	int64_t beats = peers_due(voting, now), ends = primaries_due(voting, now), silences = votes_due(voting, now);
	int64_t first = beats < ends ? beats : ends;

	return silences < first ? silences : first;
}
