/* Primaries with voters that have not answered yet. The earlier voters stay in force until then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "voting.h"

static void reply(struct voting *voting, const struct primary *primary, const char *what, const char *reason, int error)
{
	struct client *client = client_of(voting->sentinel, &primary->asker);
	const struct request request = { .id = primary->asker.id };

	if (!client)
		return;
	if (error)
		client_reply_error(client, &request, what, error);
	else
		client_reply(client, &request, what, reason);
}

static void drop(struct voting *voting, struct primary *primary, const char *reason)
{
	reply(voting, primary, "refused", reason, 0);
	primary_unlink(voting, primary);
	primary_free(primary);
}

void pending_begin(struct client *client, const struct request *request, struct primary *told)
{
	struct voting *voting = client->sentinel->voting;

	for (struct primary *earlier = voting->primaries; earlier; earlier = earlier->next)
		if (earlier->pending && strcmp(earlier->slot, told->slot) == 0) {
			/* Its voters have answered the epoch, not this request. */
			electorate_follows(told, earlier);
			drop(voting, earlier, "replaced");
			break;
		}
	told->pending = true;
	told->asker = asker_of(client, request);
	told->give_up = monotonic_ns() + told->timeout_ns;
	told->next = voting->primaries;
	voting->primaries = told;
}

void pending_end(struct voting *voting, const char *name, const char *reason)
{
	struct primary *next;

	for (struct primary *primary = voting->primaries; primary; primary = next) {
		next = primary->next;
		if (primary->pending && strcmp(primary->name, name) == 0)
			drop(voting, primary, reason);
	}
}

static void acknowledge(struct voting *voting, struct primary *primary)
{
	const char *wrong = primary_misfit(voting, primary), *what;

	if (wrong) {
		drop(voting, primary, wrong);
		return;
	}
	primary_unlink(voting, primary);
	primary->pending = false;
	what = primary_acknowledge(voting, primary);
	if (!what) {
		reply(voting, primary, "ok", NULL, 0);
		return;
	}
	reply(voting, primary, what, NULL, errno);
	primary_free(primary);
}

/* Returns a primary that the sentinel has to acknowledge or to give up now; NULL: there is none. */
static struct primary *find_due(struct voting *voting, int64_t now)
{
	for (struct primary *primary = voting->primaries; primary; primary = primary->next)
		if (primary->pending && (now < primary_until(primary) || now >= primary->give_up))
			return primary;
	return NULL;
}

int64_t pending_due(struct voting *voting, int64_t now)
{
	int64_t next = INT64_MAX;
	struct primary *primary;

	while ((primary = find_due(voting, now)))
		if (now < primary_until(primary))
			acknowledge(voting, primary);
		else
			drop(voting, primary, "no-answers");
	for (primary = voting->primaries; primary; primary = primary->next)
		if (primary->pending && primary->give_up < next)
			next = primary->give_up;
	return next;
}
