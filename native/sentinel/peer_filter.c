#include "peer_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "log.h"

enum {
	/* The source address in the headers, which begin at SKF_NET_OFF. */
	FOUR_SOURCE = 12,
	SIX_SOURCE = 8,
	WORDS = 4,
	/* An IPv6 address has four words, with two instructions for each, and a verdict. */
	PEER_INSTRUCTIONS = 2 * WORDS + 1,
	/* Four for the version of the protocol, the load of an IPv4 address, and a verdict for each family. */
	OTHER_INSTRUCTIONS = 7,
	PASS = -1,
	DROP = 0,
};

struct program {
	unsigned short length;
	struct sock_filter list[OTHER_INSTRUCTIONS + PEER_INSTRUCTIONS * PEERS_MAX];
};

static void put(struct program *program, int code, uint32_t k, size_t if_not)
{
	program->list[program->length++] = (struct sock_filter){ .code = (uint16_t)code, .jf = (uint8_t)if_not, .k = k };
}

static void load(struct program *program, int size, int offset)
{
	put(program, BPF_LD | size | BPF_ABS, (uint32_t)(SKF_NET_OFF + offset), 0);
}

static uint32_t word_of(const struct peer *peer, size_t word)
{
	return ntohl(peer->address.sin6_addr.s6_addr32[word]);
}

/* Passes what comes from a peer with an IPv4 address, whose last word is the address. */
static void pass_four(struct program *program, const struct voting *voting)
{
	load(program, BPF_W, FOUR_SOURCE);
	for (const struct peer *peer = voting->peers; peer; peer = peer->next) {
		if (!IN6_IS_ADDR_V4MAPPED(&peer->address.sin6_addr))
			continue;
		put(program, BPF_JMP | BPF_JEQ | BPF_K, word_of(peer, WORDS - 1), 1);
		put(program, BPF_RET | BPF_K, (uint32_t)PASS, 0);
	}
	put(program, BPF_RET | BPF_K, DROP, 0);
}

static void pass_six(struct program *program, const struct voting *voting)
{
	for (const struct peer *peer = voting->peers; peer; peer = peer->next) {
		if (IN6_IS_ADDR_V4MAPPED(&peer->address.sin6_addr))
			continue;
		for (size_t i = 0; i < WORDS; i++) {
			load(program, BPF_W, SIX_SOURCE + (int)(i * sizeof(uint32_t)));
			/* Behind the verdict of this peer. */
			put(program, BPF_JMP | BPF_JEQ | BPF_K, word_of(peer, i), 2 * (WORDS - 1 - i) + 1);
		}
		put(program, BPF_RET | BPF_K, (uint32_t)PASS, 0);
	}
	put(program, BPF_RET | BPF_K, DROP, 0);
}

void peer_filter(const struct voting *voting)
{
	static struct program program;
	struct sock_fprog attached = { .filter = program.list };
	size_t jump;

	if (voting->source.fd < 0)
		return;
	program.length = 0;
	/* The version of the protocol is in the first four bits of either header. */
	load(&program, BPF_B, 0);
	put(&program, BPF_ALU | BPF_RSH | BPF_K, 4, 0);
	/* The jumps of a comparison are too short for the peers. */
	put(&program, BPF_JMP | BPF_JEQ | BPF_K, 4, 1);
	jump = program.length;
	put(&program, BPF_JMP | BPF_JA, 0, 0);
	pass_six(&program, voting);
	program.list[jump].k = (uint32_t)(program.length - jump - 1);
	pass_four(&program, voting);
	attached.len = program.length;
	if (setsockopt(voting->source.fd, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached) == 0)
		return;
	/* An earlier filter would drop the beats of new peers. */
	log_failure("no filter for heartbeats", errno);
	setsockopt(voting->source.fd, SOL_SOCKET, SO_DETACH_FILTER, &attached, sizeof attached);
}
