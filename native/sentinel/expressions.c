#include "expressions.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>

struct expression expression(struct batch *batch, const char *name)
{
	struct expression opened = { .element = nest(batch, NFTA_LIST_ELEM) };

	put_text(batch, NFTA_EXPR_NAME, name);
	opened.data = nest(batch, NFTA_EXPR_DATA);
	return opened;
}

void end_expression(struct batch *batch, struct expression opened)
{
	unnest(batch, opened.data);
	unnest(batch, opened.element);
}

void put_data(struct batch *batch, uint16_t attribute, const void *value, size_t length)
{
	size_t opened = nest(batch, attribute);

	put_bytes(batch, NFTA_DATA_VALUE, value, length);
	unnest(batch, opened);
}

void load(struct batch *batch, const char *name, uint32_t key)
{
	/* `meta` and `ct` number these two attributes alike. */
	struct expression opened = expression(batch, name);

	put_u32(batch, NFTA_META_DREG, NFT_REG_1);
	put_u32(batch, NFTA_META_KEY, key);
	end_expression(batch, opened);
}

void compare(struct batch *batch, uint32_t reg, uint32_t operation, const void *value, size_t length)
{
	struct expression opened = expression(batch, "cmp");

	put_u32(batch, NFTA_CMP_SREG, reg);
	put_u32(batch, NFTA_CMP_OP, operation);
	put_data(batch, NFTA_CMP_DATA, value, length);
	end_expression(batch, opened);
}

void mask(struct batch *batch, uint32_t reg, const void *bits, size_t length)
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

void payload(struct batch *batch, uint32_t reg, uint32_t base, uint32_t offset, uint32_t length)
{
	struct expression opened = expression(batch, "payload");

	put_u32(batch, NFTA_PAYLOAD_DREG, reg);
	put_u32(batch, NFTA_PAYLOAD_BASE, base);
	put_u32(batch, NFTA_PAYLOAD_OFFSET, offset);
	put_u32(batch, NFTA_PAYLOAD_LEN, length);
	end_expression(batch, opened);
}

void lookup(struct batch *batch, const char *set, uint32_t flags)
{
	struct expression opened = expression(batch, "lookup");

	put_text(batch, NFTA_LOOKUP_SET, set);
	put_u32(batch, NFTA_LOOKUP_SREG, NFT_REG_1);
	if (flags)
		put_u32(batch, NFTA_LOOKUP_FLAGS, flags);
	end_expression(batch, opened);
}

void protocol_is(struct batch *batch, uint8_t protocol)
{
	load(batch, "meta", NFT_META_L4PROTO);
	compare(batch, NFT_REG_1, NFT_CMP_EQ, &protocol, 1);
}

void tcp_syn(struct batch *batch)
{
	static const uint8_t looked_at = 0x17, syn = 0x02; /* fin, syn, rst, ack */

	payload(batch, NFT_REG_2, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	mask(batch, NFT_REG_2, &looked_at, 1);
	compare(batch, NFT_REG_2, NFT_CMP_EQ, &syn, 1);
}

/* Answers to what the pod has sent by UDP pass. */
static void is_asked_here(struct batch *batch)
{
	static const uint8_t original = IP_CT_DIR_ORIGINAL;

	load(batch, "ct", NFT_CT_DIRECTION);
	compare(batch, NFT_REG_1, NFT_CMP_EQ, &original, 1);
}

void is_new(struct batch *batch, uint8_t protocol)
{
	if (protocol == IPPROTO_UDP)
		is_asked_here(batch);
	protocol_is(batch, protocol);
	if (protocol == IPPROTO_TCP)
		tcp_syn(batch);
}

void reject(struct batch *batch, uint8_t protocol)
{
	/* The kernels' numbers for an unreachable port: of ICMP and of ICMPv6. */
	const uint8_t code = batch->family == NFPROTO_IPV4 ? 3 : 4;
	struct expression opened = expression(batch, "reject");

	put_u32(batch, NFTA_REJECT_TYPE, protocol == IPPROTO_TCP ? NFT_REJECT_TCP_RST : NFT_REJECT_ICMP_UNREACH);
	put_bytes(batch, NFTA_REJECT_ICMP_CODE, &code, 1);
	end_expression(batch, opened);
}

void table_message(struct batch *batch, const char *table, uint16_t type, int flags)
{
	batch_message(batch, type, flags);
	put_text(batch, NFTA_TABLE_NAME, table);
}

void table_remove(struct batch *batch, const char *table, int flags)
{
	/* Create the table first, so that deleting it cannot fail. */
	table_message(batch, table, NFT_MSG_NEWTABLE, BATCH_CREATE);
	table_message(batch, table, NFT_MSG_DELTABLE, flags);
}

void table_replace(struct batch *batch, const char *table)
{
	table_remove(batch, table, 0);
	table_message(batch, table, NFT_MSG_NEWTABLE, BATCH_CREATE);
}

void new_set(struct batch *batch, const char *table, const char *name, struct set_kind kind)
{
	batch_message(batch, NFT_MSG_NEWSET, BATCH_CREATE);
	put_text(batch, NFTA_SET_TABLE, table);
	put_text(batch, NFTA_SET_NAME, name);
	put_u32(batch, NFTA_SET_FLAGS, kind.flags);
	put_u32(batch, NFTA_SET_KEY_TYPE, kind.type);
	put_u32(batch, NFTA_SET_KEY_LEN, kind.length);
	put_u32(batch, NFTA_SET_ID, kind.id);
}

void chain(struct batch *batch, const char *table, const char *name, const char *type, uint32_t hook, int priority)
{
	size_t opened;

	batch_message(batch, NFT_MSG_NEWCHAIN, BATCH_CREATE);
	put_text(batch, NFTA_CHAIN_TABLE, table);
	put_text(batch, NFTA_CHAIN_NAME, name);
	put_text(batch, NFTA_CHAIN_TYPE, type);
	opened = nest(batch, NFTA_CHAIN_HOOK);
	put_u32(batch, NFTA_HOOK_HOOKNUM, hook);
	put_u32(batch, NFTA_HOOK_PRIORITY, (uint32_t)priority);
	unnest(batch, opened);
}

size_t rule(struct batch *batch, const char *table, const char *chain_name)
{
	batch_message(batch, NFT_MSG_NEWRULE, BATCH_CREATE);
	put_text(batch, NFTA_RULE_TABLE, table);
	put_text(batch, NFTA_RULE_CHAIN, chain_name);
	return nest(batch, NFTA_RULE_EXPRESSIONS);
}

void interface_is_other(struct batch *batch, uint32_t key)
{
	static const uint32_t loopback = 1; /* the first interface of every namespace */

	load(batch, "meta", key);
	compare(batch, NFT_REG_1, NFT_CMP_NEQ, &loopback, sizeof loopback);
}

void elements_message(struct batch *batch, const char *table, const char *set, uint16_t type, int flags)
{
	batch_message(batch, type, flags);
	put_text(batch, NFTA_SET_ELEM_LIST_TABLE, table);
	put_text(batch, NFTA_SET_ELEM_LIST_SET, set);
}
