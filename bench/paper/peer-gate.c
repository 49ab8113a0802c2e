/* The gate that the paper's controller wakes, for bench/paper/peer.ts: it answers "ok" at port 20000 with "bye" and
 * exits. */
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void stop(int signal)
{
	(void)signal;
	_exit(0);
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(20000) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	signal(SIGTERM, stop);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 5))
		return 1;
	for (;;) {
		int peer = accept(listener, NULL, NULL);
		char said[8192];
		ssize_t length;

		while (peer >= 0 && (length = recv(peer, said, sizeof said, 0)) >= 0)
			if (length == 0 || (length == 2 && memcmp(said, "ok", 2) == 0)) {
				send(peer, "bye", 3, MSG_NOSIGNAL);
				return 0;
			}
		close(peer);
	}
}
