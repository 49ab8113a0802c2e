/*
 * Runs the pure parts of the waker under gcc's sanitizers.
 *
 *   harness sha256                       the hex digest of standard input
 *   harness match                        how many single-bit changes of a token's digest still match the token
 *   harness children                     the state of a child: alive, ended but not reaped, forgotten, remembered
 *   harness fuzz CORPUS INPUTS SEED      parse mutations of the corpus; same arguments, same inputs
 *
 * Every input is parsed from a heap block of exactly its size, so that the address sanitizer sees any read beyond it.
 * check_wake and check_order test the invariants of the result.
 *
 * Long because each pure part of the waker has its own command here.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "fuzz.h"
#include "order_protocol.h"
#include "sha256.h"
#include "wake_protocol.h"

enum { INPUT_MAX = ORDER_REQUEST_MAX + 64 };

static unsigned long wake_seen[3], order_seen[3];

static enum wake_parse parse_wake_exactly(const char *bytes, size_t length, struct wake_request *request)
{
	char *block = malloc(length ? length : 1);
	enum wake_parse parsed;

	if (length)
		memcpy(block, bytes, length);
	parsed = wake_parse(block, length, request);
	free(block);
	return parsed;
}

static void check_wake(const struct input *input)
{
	struct wake_request request, ignored;
	enum wake_parse parsed = parse_wake_exactly(input->bytes, input->length, &request);
	char line[WAKE_LINE_MAX + 1];
	int length;

	wake_seen[parsed]++;
	if (parsed == WAKE_INCOMPLETE) {
		if (input->length >= WAKE_LINE_MAX || (input->length && memchr(input->bytes, '\n', input->length)))
			violated("incomplete only without a newline and below the bound", input);
		return;
	}
	if (parsed != WAKE_REQUEST)
		return;
	length = snprintf(line, sizeof line, "understudy/1 wake %.64s %s\n", request.token, wake_kind_name(request.kind));
	if ((size_t)length != input->length || memcmp(line, input->bytes, input->length) != 0)
		violated("a request is exactly what its meaning is written as", input);
	for (size_t cut = 0; cut < input->length; cut++)
		if (parse_wake_exactly(input->bytes, cut, &ignored) != WAKE_INCOMPLETE)
			violated("every beginning of a request is incomplete", input);
}

static enum order_parse parse_order_exactly(const char *bytes, size_t length, struct order *order)
{
	char *block = malloc(length ? length : 1);
	enum order_parse parsed;
	size_t counted = 0;

	if (length)
		memcpy(block, bytes, length);
	parsed = order_parse(block, length, order);
	/* Walks the strings as hold does: the last one must end inside the block. */
	if (parsed == ORDER_COMPLETE && order->count > 0)
		for (const char *at = order->arguments; counted < order->count; at += strlen(at) + 1)
			counted++;
	free(block);
	return parsed;
}

static void check_order(const struct input *input)
{
	struct order order, ignored;
	enum order_parse parsed = parse_order_exactly(input->bytes, input->length, &order);

	order_seen[parsed]++;
	if (parsed == ORDER_INCOMPLETE && input->length > ORDER_REQUEST_MAX)
		violated("incomplete only within the bound", input);
	if (parsed != ORDER_COMPLETE)
		return;
	if (order.count > ORDER_ARGUMENTS_MAX || order.number < 0 || order.number > ORDER_PID_MAX)
		violated("numbers within their bounds", input);
	for (size_t cut = 0; cut < input->length && cut < 256; cut++)
		if (parse_order_exactly(input->bytes, cut, &ignored) != ORDER_INCOMPLETE)
			violated("every beginning of an order is incomplete", input);
}

static void check_digest(const struct input *input)
{
	char *text = malloc(input->length + 1);
	uint8_t digest[SHA256_SIZE];
	char hex[2 * SHA256_SIZE + 1];

	memcpy(text, input->bytes, input->length);
	text[input->length] = '\0';
	if (wake_parse_digest(text, digest)) {
		for (int i = 0; i < SHA256_SIZE; i++)
			snprintf(hex + 2 * i, 3, "%02x", digest[i]);
		if (strcmp(hex, text) != 0)
			violated("a digest is exactly what it is written as", input);
	}
	free(text);
}

static void check(const struct input *input)
{
	check_wake(input);
	check_order(input);
	check_digest(input);
}

static int fuzz_all(const char *directory, unsigned long inputs, uint64_t seed)
{
	fuzz(directory, inputs, seed, INPUT_MAX, check);
	printf("{\"wake\":[%lu,%lu,%lu],\"order\":[%lu,%lu,%lu]}\n", wake_seen[0], wake_seen[1], wake_seen[2], order_seen[0],
	       order_seen[1], order_seen[2]);
	return 0;
}

static struct input read_all(FILE *in)
{
	struct input input = { 0 };
	size_t room = 0, n;

	do {
		room += 65536;
		input.bytes = realloc(input.bytes, room);
		if (!input.bytes)
			exit(1);
		n = fread(input.bytes + input.length, 1, room - input.length, in);
		input.length += n;
	} while (n > 0);
	return input;
}

static int hash(void)
{
	struct input input = read_all(stdin);
	uint8_t digest[SHA256_SIZE];
	char *block = malloc(input.length ? input.length : 1);

	memcpy(block, input.bytes, input.length);
	sha256(block, input.length, digest);
	free(block);
	free(input.bytes);
	for (int i = 0; i < SHA256_SIZE; i++)
		printf("%02x", digest[i]);
	putchar('\n');
	return 0;
}

static int match(void)
{
	char token[WAKE_TOKEN_LENGTH];
	uint8_t digest[SHA256_SIZE];
	int matching = 0;

	memset(token, '7', sizeof token);
	sha256(token, sizeof token, digest);
	printf("%d", wake_token_matches(token, digest));
	for (int bit = 0; bit < 8 * SHA256_SIZE; bit++) {
		digest[bit / 8] = (uint8_t)(digest[bit / 8] ^ (1 << bit % 8));
		matching += wake_token_matches(token, digest);
		digest[bit / 8] = (uint8_t)(digest[bit / 8] ^ (1 << bit % 8));
	}
	printf(" %d\n", matching);
	return 0;
}

static void tell_child(const struct exits *exits, pid_t pid)
{
	int code = -1;
	enum child_state known = child_state(exits, pid, &code);

	printf("%s %d\n", known == CHILD_ALIVE ? "alive" : known == CHILD_DEAD ? "dead" : "unknown", code);
}

static int children(void)
{
	static struct exits exits;
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	tell_child(&exits, pid);
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	tell_child(&exits, pid);
	/* The query has left it to be reaped. */
	printf("reaped %d\n", waitpid(pid, NULL, 0) == pid);
	tell_child(&exits, pid);
	exits_remember(&exits, pid, 137);
	tell_child(&exits, pid);
	for (int i = 0; i < EXITS_REMEMBERED; i++)
		exits_remember(&exits, 1, 0);
	tell_child(&exits, pid);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "match") == 0)
		return match();
	if (argc == 2 && strcmp(argv[1], "children") == 0)
		return children();
	if (argc == 2 && strcmp(argv[1], "sha256") == 0)
		return hash();
	if (argc == 5 && strcmp(argv[1], "fuzz") == 0)
		return fuzz_all(argv[2], strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	fputs("usage: harness sha256 | match | children | fuzz CORPUS INPUTS SEED\n", stderr);
	return 2;
}
