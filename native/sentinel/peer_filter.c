#include "peer_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "log.h"

enum {
	/* Behind the header of UDP, with which the data of this filter begins. */
	TAG = 8,
	/* A comparison and a verdict for each peer; the load, and the verdict for all others. */
	INSTRUCTIONS = 2 * PEERS_MAX + 2,
	PASS = -1,
	DROP = 0,
};

void peer_filter(const struct voting *voting)
{
	static struct sock_filter program[INSTRUCTIONS];
	struct sock_fprog attached = { .filter = program };

	if (voting->source.fd < 0)
		return;
	/* A datagram that is too short for the load is dropped. */
	program[attached.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, TAG);
	for (const struct peer *peer = voting->peers; peer; peer = peer->next) {
		program[attached.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, peer->tag, 0, 1);
		program[attached.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (uint32_t)PASS);
	}
	program[attached.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, DROP);
	if (setsockopt(voting->source.fd, SOL_SOCKET, SO_ATTACH_FILTER, &attached, sizeof attached) == 0)
		return;
	/* An earlier filter would drop the beats of new peers. */
	log_failure("no filter for heartbeats", errno);
	setsockopt(voting->source.fd, SOL_SOCKET, SO_DETACH_FILTER, &attached, sizeof attached);
}
