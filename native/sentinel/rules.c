#include "rules.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/rtnetlink.h>

#include "expressions.h"

/* Before any other nat chain in the namespace (-100): the first one decides. */
enum { PREROUTING_PRIORITY = -150, POSTROUTING_PRIORITY = 90 };

static const char table[] = "understudy", map[] = "heir";

static void mask(struct batch *batch, uint32_t reg, const void *bits, size_t length)
{
	static const uint8_t zero[4];
	struct expression opened = expression(batch, "bitwise");

	put_u32(batch, NFTA_BITWISE_SREG, reg);
	put_u32(batch, NFTA_BITWISE_DREG, reg);
	put_u32(batch, NFTA_BITWISE_LEN, (uint32_t)length);
	put_data(batch, NFTA_BITWISE_MASK, bits, length);
	put_data(batch, NFTA_BITWISE_XOR, zero, length);
	end_expression(batch, opened);
}

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

static void tcp_syn(struct batch *batch)
{
	static const uint8_t looked_at = 0x17, syn = 0x02; /* fin, syn, rst, ack */
	struct expression opened = expression(batch, "payload");

	put_u32(batch, NFTA_PAYLOAD_DREG, NFT_REG_2);
	put_u32(batch, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_TRANSPORT_HEADER);
	put_u32(batch, NFTA_PAYLOAD_OFFSET, 13);
	put_u32(batch, NFTA_PAYLOAD_LEN, 1);
	end_expression(batch, opened);
	mask(batch, NFT_REG_2, &looked_at, 1);
	compare(batch, NFT_REG_2, NFT_CMP_EQ, &syn, 1);
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
	put_u32(batch, NFTA_NAT_FAMILY, NFPROTO_IPV4);
	put_u32(batch, NFTA_NAT_REG_ADDR_MIN, NFT_REG_2);
	end_expression(batch, opened);
}

static void inbound_rule(struct batch *batch, uint8_t protocol)
{
	size_t opened = rule(batch, table, "prerouting");

	interface_is_other(batch, NFT_META_IIF);
	address_is_local(batch, NFTA_FIB_F_DADDR, NFT_CMP_EQ);
	load(batch, "meta", NFT_META_L4PROTO);
	compare(batch, NFT_REG_1, NFT_CMP_EQ, &protocol, 1);
	if (protocol == IPPROTO_TCP)
		tcp_syn(batch);
	dnat_to_heir(batch);
	unnest(batch, opened);
}

static void outbound_rule(struct batch *batch)
{
	static const uint32_t dnat = IPS_DST_NAT, none = 0;
	size_t opened = rule(batch, table, "postrouting");

	load(batch, "ct", NFT_CT_STATUS);
	mask(batch, NFT_REG_1, &dnat, sizeof dnat);
	compare(batch, NFT_REG_1, NFT_CMP_NEQ, &none, sizeof none);
	address_is_local(batch, NFTA_FIB_F_SADDR, NFT_CMP_NEQ);
	end_expression(batch, expression(batch, "masq"));
	unnest(batch, opened);
}

/* A delete without a particular element deletes all; an empty map is no error. */
static void empty(struct batch *batch, int flags)
{
	elements_message(batch, table, map, NFT_MSG_DELSETELEM, flags);
}

static void fill(struct batch *batch, uint32_t heir)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP };
	size_t list;

	elements_message(batch, table, map, NFT_MSG_NEWSETELEM, BATCH_CREATE | BATCH_ACK);
	list = nest(batch, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < sizeof protocols; i++) {
		size_t element = nest(batch, NFTA_LIST_ELEM);

		put_data(batch, NFTA_SET_ELEM_KEY, &protocols[i], 1);
		put_data(batch, NFTA_SET_ELEM_DATA, &heir, sizeof heir);
		unnest(batch, element);
	}
	unnest(batch, list);
}

void rules_prepare(struct batch *batch, void *bytes, size_t room, uint32_t heir)
{
	batch_begin(batch, bytes, room);
	table_replace(batch, table);
	batch_message(batch, NFT_MSG_NEWSET, BATCH_CREATE);
	put_text(batch, NFTA_SET_TABLE, table);
	put_text(batch, NFTA_SET_NAME, map);
	put_u32(batch, NFTA_SET_FLAGS, NFT_SET_MAP);
	/* These type numbers are nft's own, so that `nft list` can print the table. */
	put_u32(batch, NFTA_SET_KEY_TYPE, 12);
	put_u32(batch, NFTA_SET_KEY_LEN, 1);
	put_u32(batch, NFTA_SET_DATA_TYPE, 7);
	put_u32(batch, NFTA_SET_DATA_LEN, 4);
	put_u32(batch, NFTA_SET_ID, 1);
	chain(batch, table, "prerouting", "nat", NF_INET_PRE_ROUTING, PREROUTING_PRIORITY);
	chain(batch, table, "postrouting", "nat", NF_INET_POST_ROUTING, POSTROUTING_PRIORITY);
	inbound_rule(batch, IPPROTO_TCP);
	inbound_rule(batch, IPPROTO_UDP);
	outbound_rule(batch);
	if (heir)
		fill(batch, heir);
	else
		empty(batch, BATCH_ACK);
	batch_end(batch);
}

void rules_close(struct batch *batch, void *bytes, size_t room, uint32_t heir)
{
	batch_begin(batch, bytes, room);
	/* Another container of the pod may have died before with another heir. */
	empty(batch, 0);
	fill(batch, heir);
	batch_end(batch);
}

void rules_open(struct batch *batch, void *bytes, size_t room)
{
	batch_begin(batch, bytes, room);
	empty(batch, BATCH_ACK);
	batch_end(batch);
}
