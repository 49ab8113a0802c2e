/*
 * Numbers of the kernel's binary interface that are used here: musl brings no kernel headers, and a build should not
 * depend on those of the machine. testing/nf_abi.c has a compiler compare them with the real ones.
 */
#ifndef NF_ABI_H
#define NF_ABI_H

#include <stdint.h>

struct netlink_header {
	uint32_t length;
	uint16_t type, flags;
	uint32_t sequence, port;
};

struct nfnetlink_header {
	uint8_t family, version;
	uint16_t resource; /* network byte order */
};

struct netlink_attribute {
	uint16_t length, type;
};

struct netlink_address {
	uint16_t family, pad;
	uint32_t port, groups;
};

enum {
	NL_NETFILTER = 12, /* NETLINK_NETFILTER */
	NL_REQUEST = 1, NL_ACK = 4, NL_DUMP = 0x300, NL_CREATE = 0x400, /* NLM_F_* */
	NL_ERROR = 2, NL_DONE = 3, /* NLMSG_* */
	NL_NESTED = 0x8000, /* NLA_F_NESTED */
	NL_SOL = 270, NL_EXT_ACK = 11, NL_CAP_ACK = 10, /* SOL_NETLINK, NETLINK_EXT_ACK, NETLINK_CAP_ACK */
};

enum {
	NF_BATCH_BEGIN = 0x10, NF_BATCH_END = 0x11, /* NFNL_MSG_BATCH_* */
	NF_CTNETLINK = 1, NF_NFTABLES = 10, /* NFNL_SUBSYS_* */
	NF_IPV4 = 2, /* NFPROTO_IPV4 */
	NF_PREROUTING = 0, NF_POSTROUTING = 4, /* NF_INET_* */
};

/* NFT_MSG_* */
enum { MSG_NEWTABLE = 0, MSG_DELTABLE = 2, MSG_NEWCHAIN = 3, MSG_NEWRULE = 6, MSG_NEWSET = 9, MSG_NEWSETELEM = 12, MSG_DELSETELEM = 14 };

/* NFTA_* */
enum {
	TABLE_NAME = 1,
	CHAIN_TABLE = 1, CHAIN_NAME = 3, CHAIN_HOOK = 4, CHAIN_TYPE = 7,
	HOOK_HOOKNUM = 1, HOOK_PRIORITY = 2,
	RULE_TABLE = 1, RULE_CHAIN = 2, RULE_EXPRESSIONS = 4,
	LIST_ELEM = 1,
	EXPR_NAME = 1, EXPR_DATA = 2,
	DATA_VALUE = 1,
	SET_TABLE = 1, SET_NAME = 2, SET_FLAGS = 3, SET_KEY_TYPE = 4, SET_KEY_LEN = 5, SET_DATA_TYPE = 6, SET_DATA_LEN = 7, SET_ID = 10,
	SET_ELEM_LIST_TABLE = 1, SET_ELEM_LIST_SET = 2, SET_ELEM_LIST_ELEMENTS = 3,
	SET_ELEM_KEY = 1, SET_ELEM_DATA = 2,
	META_DREG = 1, META_KEY = 2,
	FIB_DREG = 1, FIB_RESULT = 2, FIB_FLAGS = 3,
	CT_DREG = 1, CT_KEY = 2,
	CMP_SREG = 1, CMP_OP = 2, CMP_DATA = 3,
	BITWISE_SREG = 1, BITWISE_DREG = 2, BITWISE_LEN = 3, BITWISE_MASK = 4, BITWISE_XOR = 5,
	PAYLOAD_DREG = 1, PAYLOAD_BASE = 2, PAYLOAD_OFFSET = 3, PAYLOAD_LEN = 4,
	LOOKUP_SET = 1, LOOKUP_SREG = 2, LOOKUP_DREG = 3,
	NAT_TYPE = 1, NAT_FAMILY = 2, NAT_REG_ADDR_MIN = 3,
};

/* NFT_*: values of those attributes. */
enum {
	SET_MAP = 8,
	META_IIF = 4, META_L4PROTO = 16,
	FIB_RESULT_ADDRTYPE = 3, FIB_SADDR = 1, FIB_DADDR = 2,
	CT_STATUS = 2, STATUS_DST_NAT = 1 << 5,
	CMP_EQ = 0, CMP_NEQ = 1,
	PAYLOAD_TRANSPORT = 2,
	NAT_DNAT = 1,
	REGISTER_1 = 1, REGISTER_2 = 2,
};

/* CTNL_MSG_* and CTA_*: connection tracking. */
enum {
	CTMSG_GET = 1, CTMSG_DELETE = 2,
	CTA_ORIGINAL = 1, CTA_STATUS_WORD = 3, CTA_PROTOINFO_NEST = 4,
	CTA_TUPLE_ADDRESSES = 1, CTA_TUPLE_PROTOCOL = 2,
	CTA_V4_SOURCE = 1, CTA_V4_DESTINATION = 2,
	CTA_PROTOCOL_NUMBER = 1,
	CTA_INFO_TCP = 1, CTA_TCP_STATE = 1,
	TCP_SYN_SENT_STATE = 1, TCP_SYN_RECEIVED_STATE = 2,
};

enum { ROUTE_LOCAL = 2 }; /* RTN_LOCAL */

#endif
