#include "deadman.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>

#include "clock.h"
#include "expressions.h"
#include "log.h"

/* Before every other chain of the namespace. */
enum { PRIORITY = -450, BYTES = 2048, TYPE_NF_PROTO = 1, ATTEMPTS = 2, PAUSES = 10 };

/* As long as the kernel usually takes, many times over. */
#ifndef SLOW_NS
#define SLOW_NS (20 * NS_PER_MS)
#endif

static const char table[] = "understudy-fence", set[] = "serves";

static void begin(struct batch *batch, void *bytes)
{
	batch_begin(batch, bytes, BYTES);
	batch->family = NFPROTO_INET;
}

/*
 * A kernel may not change the time of an element that is there, so the set is emptied and filled in one transaction.
 * Milliseconds are rounded down: the elements end before the primary has to.
 */
static void fill(struct batch *batch, int64_t until)
{
	static const uint8_t protocols[] = { NFPROTO_IPV4, NFPROTO_IPV6 };
	int64_t left = (until - monotonic_ns()) / NS_PER_MS;
	size_t list;

	elements_message(batch, table, set, NFT_MSG_DELSETELEM, left > 0 ? 0 : BATCH_ACK);
	if (left <= 0)
		return;
	elements_message(batch, table, set, NFT_MSG_NEWSETELEM, BATCH_CREATE | BATCH_ACK);
	list = nest(batch, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < sizeof protocols; i++) {
		uint64_t milliseconds = htobe64((uint64_t)left);
		size_t element = nest(batch, NFTA_LIST_ELEM);

		put_data(batch, NFTA_SET_ELEM_KEY, &protocols[i], 1);
		put_bytes(batch, NFTA_SET_ELEM_TIMEOUT, &milliseconds, sizeof milliseconds);
		unnest(batch, element);
	}
	unnest(batch, list);
}

static void hook_chain(struct batch *batch, const char *name, uint32_t hook, uint32_t interface)
{
	struct expression opened;
	size_t rule_opened, data, verdict;

	chain(batch, table, name, "filter", hook, PRIORITY);
	rule_opened = rule(batch, table, name);
	interface_is_other(batch, interface);
	load(batch, "meta", NFT_META_NFPROTO);
	lookup(batch, set, NFT_LOOKUP_F_INV);
	opened = expression(batch, "immediate");
	put_u32(batch, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = nest(batch, NFTA_IMMEDIATE_DATA);
	verdict = nest(batch, NFTA_DATA_VERDICT);
	put_u32(batch, NFTA_VERDICT_CODE, NF_DROP);
	unnest(batch, verdict);
	unnest(batch, data);
	end_expression(batch, opened);
	unnest(batch, rule_opened);
}

static int prepare(struct committer *committer, int64_t until)
{
	uint8_t bytes[BYTES];
	struct batch batch;

	begin(&batch, bytes);
	table_replace(&batch, table);
	new_set(&batch, table, set, (struct set_kind){ .id = 1, .flags = NFT_SET_TIMEOUT, .type = TYPE_NF_PROTO, .length = 1 });
	hook_chain(&batch, "input", NF_INET_LOCAL_IN, NFT_META_IIF);
	hook_chain(&batch, "output", NF_INET_LOCAL_OUT, NFT_META_OIF);
	fill(&batch, until);
	batch_end(&batch);
	return committer_commit(committer, &batch, PATIENT_NS);
}

/* Returns NULL with errno. */
static struct committer *arm(struct process process, int64_t until, bool kept)
{
	struct committer *committer = committer_enter(process);
	int error;

	if (!committer || kept)
		return committer;
	error = prepare(committer, until);
	if (!error)
		return committer;
	committer_free(committer);
	errno = error;
	return NULL;
}

struct deadman *deadman_arm(struct process process, int64_t until, bool kept)
{
	struct deadman *deadman = calloc(1, sizeof *deadman);
	int error;

	if (!deadman)
		return NULL;
	deadman->process = process;
	deadman->until = until;
	deadman->committer = arm(process, until, kept);
	if (deadman->committer) {
		if (!kept && until > monotonic_ns())
			deadman_renew(deadman, until);
		return deadman;
	}
	error = errno;
	free(deadman);
	errno = error;
	return NULL;
}

/*
 * Waits for the kernel. After one long wait, the other switches get a millisecond each for a while: many slow pods must not take
 * all time of the sentinel.
 */
static int commit(struct deadman *deadman, int64_t until)
{
	static int64_t hurry_until;
	uint8_t bytes[BYTES];
	struct batch batch;
	int64_t began = monotonic_ns();
	int error;

	begin(&batch, bytes);
	fill(&batch, until);
	batch_end(&batch);
	error = committer_commit(deadman->committer, &batch, began < hurry_until ? NS_PER_MS : PROMPT_NS);
	if (error == EINPROGRESS)
		hurry_until = began + (1 + PAUSES) * (int64_t)PROMPT_NS;
	return error;
}

void deadman_renew(struct deadman *deadman, int64_t until)
{
	int64_t began = monotonic_ns(), took = 0;
	int error = 0;

	if (began < deadman->again)
		return;
	/*
	 * The kernel counts from when it takes the message. If this process was paused since it has computed the time that is
	 * left, it corrects that at once.
	 */
	for (int attempt = 0; attempt < ATTEMPTS && !error && (attempt == 0 || took > SLOW_NS); attempt++) {
		began = monotonic_ns();
		error = commit(deadman, until);
		took = monotonic_ns() - began;
		if (!error)
			deadman->until = took > SLOW_NS ? until + took : until;
	}
	if (error == EINPROGRESS || error == EBUSY)
		deadman->until = INT64_MAX;
	else if (error)
		log_failure("packets of a primary may not pass", error);
	if (error && took < PROMPT_NS)
		took = PROMPT_NS;
	/* Transactions of the pod itself hold up ours. The other pods must not wait for them. */
	if (error || took > SLOW_NS)
		deadman->again = began + (1 + PAUSES) * took;
}

int64_t deadman_due(const struct deadman *deadman, int64_t end)
{
	return deadman->until > end ? deadman->again : INT64_MAX;
}

int deadman_disarm(struct deadman *deadman)
{
	uint8_t bytes[BYTES];
	struct batch batch;
	int error;

	begin(&batch, bytes);
	table_message(&batch, table, NFT_MSG_DELTABLE, BATCH_ACK);
	batch_end(&batch);
	error = committer_commit(deadman->committer, &batch, PATIENT_NS);
	if (error == EBUSY)
		return error;
	if (error && error != ENOENT)
		log_failure("cannot remove the switch of a primary", error);
	deadman_free(deadman);
	return 0;
}

void deadman_free(struct deadman *deadman)
{
	if (!deadman)
		return;
	committer_free(deadman->committer);
	free(deadman);
}
