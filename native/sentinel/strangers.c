#include "strangers.h"

#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <string.h>

#include "address.h"
#include "committer.h"
#include "expressions.h"
#include "rules.h"
#include "verbs.h"

enum { PRIORITY = -20, TYPE_IPV4 = 7, TYPE_IPV6 = 8, STRANGERS_MAX = 64 };

static const char table[] = "understudy-strangers", set[] = "from";

struct strangers {
	struct address list[STRANGERS_MAX];
	size_t count;
};

static void source_is_in_set(struct batch *batch)
{
	const bool is_four = batch->family == NFPROTO_IPV4;

	payload(batch, NFT_REG_1, NFT_PAYLOAD_NETWORK_HEADER, is_four ? 12 : 8, is_four ? 4 : 16);
	lookup(batch, set, 0);
}

static void port_is_of_redirect(struct batch *batch)
{
	const uint16_t from = htobe16(REDIRECT_PORTS_FROM);

	payload(batch, NFT_REG_1, NFT_PAYLOAD_TRANSPORT_HEADER, 0, sizeof from);
	compare(batch, NFT_REG_1, NFT_CMP_GTE, &from, sizeof from);
}

static void reject_rule(struct batch *batch, const char *chain_name, uint8_t protocol)
{
	size_t opened = rule(batch, table, chain_name);

	interface_is_other(batch, NFT_META_IIF);
	is_new(batch, protocol);
	source_is_in_set(batch);
	port_is_of_redirect(batch);
	reject(batch, protocol);
	unnest(batch, opened);
}

static void reject_in(struct batch *batch, const char *name, uint32_t hook)
{
	chain(batch, table, name, "filter", hook, PRIORITY);
	reject_rule(batch, name, IPPROTO_TCP);
	reject_rule(batch, name, IPPROTO_UDP);
}

static void fill(struct batch *batch, const struct strangers *strangers)
{
	size_t list;

	elements_message(batch, table, set, NFT_MSG_NEWSETELEM, BATCH_CREATE | BATCH_ACK);
	list = nest(batch, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < strangers->count; i++) {
		const struct address *address = &strangers->list[i];
		size_t element;

		if (address->family != batch->family)
			continue;
		element = nest(batch, NFTA_LIST_ELEM);
		put_data(batch, NFTA_SET_ELEM_KEY, address->bytes, address->length);
		unnest(batch, element);
	}
	unnest(batch, list);
}

static void prepare(struct batch *batch, const struct strangers *strangers)
{
	const bool is_four = batch->family == NFPROTO_IPV4;

	table_replace(batch, table);
	new_set(batch, table, set,
		(struct set_kind){ .id = 1, .type = is_four ? TYPE_IPV4 : TYPE_IPV6, .length = is_four ? 4 : 16 });
	reject_in(batch, "input", NF_INET_LOCAL_IN);
	reject_in(batch, "forward", NF_INET_FORWARD);
	fill(batch, strangers);
}

static bool has_family(const struct strangers *strangers, uint8_t family)
{
	for (size_t i = 0; i < strangers->count; i++)
		if (strangers->list[i].family == family)
			return true;
	return false;
}

/* Returns 0 or an errno. */
static int keep_out_of_family(struct committer *committer, const struct strangers *strangers, uint8_t family)
{
	const bool is_empty = !has_family(strangers, family);
	uint8_t bytes[RULES_BYTES];
	struct batch batch;
	int error;

	batch_begin(&batch, bytes, sizeof bytes);
	batch.family = family;
	if (is_empty)
		table_remove(&batch, table, BATCH_ACK);
	else
		prepare(&batch, strangers);
	batch_end(&batch);
	error = committer_commit(committer, &batch, PATIENT_NS);
	/* A kernel without the family has no such table. */
	return is_empty && (error == EOPNOTSUPP || error == EAFNOSUPPORT) ? 0 : error;
}

/* Returns 0 or an errno. */
static int keep_out(struct process process, const struct strangers *strangers)
{
	struct committer *committer = committer_enter(process);
	int error;

	if (!committer)
		return errno;
	error = keep_out_of_family(committer, strangers, NFPROTO_IPV4);
	if (!error)
		error = keep_out_of_family(committer, strangers, NFPROTO_IPV6);
	committer_free(committer);
	return error;
}

/* Two strangers with one address would be two elements with one key. */
static void add(struct strangers *strangers, const struct address *address)
{
	for (size_t i = 0; i < strangers->count; i++)
		if (memcmp(&strangers->list[i], address, sizeof *address) == 0)
			return;
	strangers->list[strangers->count++] = *address;
}

void strangers_verb(struct client *client, const struct request *request)
{
	struct strangers strangers = { .count = 0 };
	char **from = request_list(request, "from");
	const char *wrong = from ? NULL : "memory";
	struct process process;
	int error;

	for (size_t i = 0; from && from[i] && !wrong; i++) {
		struct address address = { 0 };

		if (i == STRANGERS_MAX || !address_parse(from[i], &address))
			wrong = "bad-from";
		else
			add(&strangers, &address);
	}
	list_free(from);
	if (wrong) {
		client_reply(client, request, "refused", wrong);
		return;
	}
	if (!verb_process(client, request, "netns", "start", &process))
		return;
	error = keep_out(process, &strangers);
	if (error)
		client_reply_error(client, request, "strangers", error);
	else
		client_reply(client, request, "ok", NULL);
}
