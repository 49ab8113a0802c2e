#include "rules.h"

#include <endian.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>

#include "expressions.h"

/* Before any other nat chain in the namespace (-100): the first one decides. */
enum { PREROUTING_PRIORITY = -150, POSTROUTING_PRIORITY = 90, INPUT_PRIORITY = -10 };

/* The numbers of types are nft's own, so that `nft list` can print the tables. */
enum { TYPE_IPV4 = 7, TYPE_IPV6 = 8, TYPE_PROTOCOL = 12, MAP_ID = 1, SET_ID = 2 };

static const char table[] = "understudy", map[] = "heir", set[] = "shut";
static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };

static void address_is_local(struct batch *batch, uint32_t which, uint32_t operation)
{
	struct expression opened = expression(batch, "fib");
	uint32_t local = RTN_LOCAL;

	put_u32(batch, NFTA_FIB_DREG, NFT_REG_1);
	put_u32(batch, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
	put_u32(batch, NFTA_FIB_FLAGS, which);
	end_expression(batch, opened);
	compare(batch, NFT_REG_1, operation, &local, sizeof local);
}

/* Expects the protocol in register 1. If the map is empty, the rule ends here. */
static void dnat_to_heir(struct batch *batch)
{
	struct expression opened = expression(batch, "lookup");

	put_text(batch, NFTA_LOOKUP_SET, map);
	put_u32(batch, NFTA_LOOKUP_SREG, NFT_REG_1);
	put_u32(batch, NFTA_LOOKUP_DREG, NFT_REG_2);
	end_expression(batch, opened);
	opened = expression(batch, "nat");
	put_u32(batch, NFTA_NAT_TYPE, NFT_NAT_DNAT);
	put_u32(batch, NFTA_NAT_FAMILY, batch->family);
	put_u32(batch, NFTA_NAT_REG_ADDR_MIN, NFT_REG_2);
	end_expression(batch, opened);
}

static void inbound_rule(struct batch *batch, uint8_t protocol)
{
	size_t opened = rule(batch, table, "prerouting");

	interface_is_other(batch, NFT_META_IIF);
	address_is_local(batch, NFTA_FIB_F_DADDR, NFT_CMP_EQ);
	protocol_is(batch, protocol);
	if (protocol == IPPROTO_TCP)
		tcp_syn(batch);
	dnat_to_heir(batch);
	unnest(batch, opened);
}

static void shut_rule(struct batch *batch, uint8_t protocol)
{
	size_t opened = rule(batch, table, "input");

	interface_is_other(batch, NFT_META_IIF);
	is_new(batch, protocol);
	lookup(batch, set, 0);
	reject(batch, protocol);
	unnest(batch, opened);
}

static void put_port(struct batch *batch, uint32_t reg, uint16_t port)
{
	const uint16_t bytes = htobe16(port);
	struct expression opened = expression(batch, "immediate");

	put_u32(batch, NFTA_IMMEDIATE_DREG, reg);
	put_data(batch, NFTA_IMMEDIATE_DATA, &bytes, sizeof bytes);
	end_expression(batch, opened);
}

static void from_known_ports(struct batch *batch)
{
	struct expression opened;

	put_port(batch, NFT_REG_1, REDIRECT_PORTS_FROM);
	put_port(batch, NFT_REG_2, UINT16_MAX);
	opened = expression(batch, "masq");
	put_u32(batch, NFTA_MASQ_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
	put_u32(batch, NFTA_MASQ_REG_PROTO_MIN, NFT_REG_1);
	put_u32(batch, NFTA_MASQ_REG_PROTO_MAX, NFT_REG_2);
	end_expression(batch, opened);
}

static void outbound_rule(struct batch *batch)
{
	static const uint32_t dnat = IPS_DST_NAT, none = 0;
	size_t opened = rule(batch, table, "postrouting");

	load(batch, "ct", NFT_CT_STATUS);
	mask(batch, NFT_REG_1, &dnat, sizeof dnat);
	compare(batch, NFT_REG_1, NFT_CMP_NEQ, &none, sizeof none);
	address_is_local(batch, NFTA_FIB_F_SADDR, NFT_CMP_NEQ);
	from_known_ports(batch);
	unnest(batch, opened);
}

static void empty_set(struct batch *batch, const char *name, int flags)
{
	/* A deletion without a particular element deletes all; an empty set is no error. */
	elements_message(batch, table, name, NFT_MSG_DELSETELEM, flags);
}

/* Fills the map of the heir's family, or the set of the other one, whose elements have no data. */
static void fill(struct batch *batch, const struct address *heir)
{
	const bool is_its = heir->family == batch->family;
	size_t list;

	elements_message(batch, table, is_its ? map : set, NFT_MSG_NEWSETELEM, BATCH_CREATE | BATCH_ACK);
	list = nest(batch, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < sizeof protocols; i++) {
		size_t element = nest(batch, NFTA_LIST_ELEM);

		put_data(batch, NFTA_SET_ELEM_KEY, &protocols[i], 1);
		if (is_its)
			put_data(batch, NFTA_SET_ELEM_DATA, heir->bytes, heir->length);
		unnest(batch, element);
	}
	unnest(batch, list);
}

static void set_of_protocols(struct batch *batch, const char *name, uint32_t id, uint32_t flags)
{
	new_set(batch, table, name, (struct set_kind){ .id = id, .flags = flags, .type = TYPE_PROTOCOL, .length = 1 });
}

static void prepare(struct batch *batch, bool both)
{
	table_replace(batch, table);
	set_of_protocols(batch, map, MAP_ID, NFT_SET_MAP);
	put_u32(batch, NFTA_SET_DATA_TYPE, batch->family == NFPROTO_IPV4 ? TYPE_IPV4 : TYPE_IPV6);
	put_u32(batch, NFTA_SET_DATA_LEN, batch->family == NFPROTO_IPV4 ? 4 : 16);
	chain(batch, table, "prerouting", "nat", NF_INET_PRE_ROUTING, PREROUTING_PRIORITY);
	chain(batch, table, "postrouting", "nat", NF_INET_POST_ROUTING, POSTROUTING_PRIORITY);
	for (size_t i = 0; i < sizeof protocols; i++)
		inbound_rule(batch, protocols[i]);
	outbound_rule(batch);
	if (!both)
		return;
	set_of_protocols(batch, set, SET_ID, 0);
	chain(batch, table, "input", "filter", NF_INET_LOCAL_IN, INPUT_PRIORITY);
	for (size_t i = 0; i < sizeof protocols; i++)
		shut_rule(batch, protocols[i]);
}

/* For the table of the batch's family. The last message of a batch asks for the kernel's acknowledgement. */
static void empty(struct batch *batch, bool both)
{
	empty_set(batch, map, BATCH_ACK);
	if (both)
		empty_set(batch, set, BATCH_ACK);
}

/* Calls `act` for the table of each family. */
static void each_family(struct batch *batch, bool both, void (*act)(struct batch *, bool))
{
	batch->family = NFPROTO_IPV4;
	act(batch, both);
	if (!both)
		return;
	batch->family = NFPROTO_IPV6;
	act(batch, both);
}

static void close_to(struct batch *batch, bool both, const struct address *heir)
{
	batch->family = NFPROTO_IPV4;
	fill(batch, heir);
	if (!both)
		return;
	batch->family = NFPROTO_IPV6;
	fill(batch, heir);
}

void rules_prepare(struct batch *batch, void *bytes, size_t room, bool both, const struct address *heir)
{
	batch_begin(batch, bytes, room);
	each_family(batch, both, prepare);
	if (heir)
		close_to(batch, both, heir);
	else
		each_family(batch, both, empty);
	batch_end(batch);
}

void rules_close(struct batch *batch, void *bytes, size_t room, bool both, const struct address *heir)
{
	batch_begin(batch, bytes, room);
	/* Another container of the pod may have died before with another heir. */
	each_family(batch, both, empty);
	close_to(batch, both, heir);
	batch_end(batch);
}

void rules_open(struct batch *batch, void *bytes, size_t room, bool both)
{
	batch_begin(batch, bytes, room);
	each_family(batch, both, empty);
	batch_end(batch);
}
