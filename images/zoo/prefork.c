/*
 * The counter of images/counter with many tasks: a master with four worker processes of four threads each, which all
 * accept from one socket and add to one number in shared memory. GET / adds one, GET /peek does not. Each thread also
 * keeps a number of its own; /threads returns their sum, which equals the count if none was lost.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, THREADS = 4 };

struct shared {
	atomic_ullong count;
	atomic_ullong by_thread[WORKERS][THREADS];
};

static struct shared *shared;
static int listener;

struct place {
	int worker, thread;
};

static void answer(int client, const char *request, struct place at)
{
	char host[256] = "", body[512], response[768];
	unsigned long long sum = 0;

	if (!strncmp(request, "GET /crash ", 11))
		_exit(7); /* the master ends with its first worker */
	if (!strncmp(request, "GET / ", 6)) {
		atomic_fetch_add(&shared->count, 1);
		atomic_fetch_add(&shared->by_thread[at.worker][at.thread], 1);
	}
	for (int w = 0; w < WORKERS; w++)
		for (int t = 0; t < THREADS; t++)
			sum += atomic_load(&shared->by_thread[w][t]);
	gethostname(host, sizeof host - 1);
	snprintf(body, sizeof body, "{\"count\":%llu,\"sum\":%llu,\"pid\":%d,\"host\":\"%s\"}",
		 atomic_load(&shared->count), sum, (int)getpid(), host);
	int length = snprintf(response, sizeof response,
			      "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body), body);
	if (write(client, response, (size_t)length) < 0)
		return;
}

static void *serve(void *argument)
{
	struct place at = *(struct place *)argument;

	for (;;) {
		char request[4096];
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		ssize_t got;

		if (client < 0)
			continue;
		got = read(client, request, sizeof request - 1);
		if (got > 0) {
			request[got] = 0;
			answer(client, request, at);
		}
		close(client);
	}
	return NULL;
}

static void work(int worker)
{
	static struct place places[THREADS];
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	for (int t = 0; t < THREADS; t++) {
		places[t] = (struct place){ worker, t };
		if (t > 0 && pthread_create(&thread, NULL, serve, &places[t]))
			exit(1);
	}
	serve(&places[0]);
}

static void stop(int number)
{
	(void)number;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((unsigned short)(argc > 1 ? atoi(argv[1]) : 8080)) };
	int on = 1, status;

	signal(SIGTERM, stop);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (shared == MAP_FAILED || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 128)) {
		perror("prefork");
		return 1;
	}
	for (int worker = 0; worker < WORKERS; worker++)
		if (fork() == 0)
			work(worker);
	/* A worker that dies takes the whole server with it. */
	wait(&status);
	return 7;
}
