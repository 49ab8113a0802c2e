#ifndef ORDER_PROTOCOL_H
#define ORDER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Orders to `hold`. A request is one line of at most 128 bytes, `understudy/2 KEY ORDER`; the key is that of the file
 * `hold.key` beside the socket. The query `understudy/1 state` needs no key. ORDER is one of these:
 *
 *   state                 report whether there is an app
 *   start [BYTES]         run the command as a child; BYTES of NUL-terminated strings follow the line and go in
 *                         front of it (the image's entrypoint, which the pod cannot know)
 *   adopt PID             make the child PID the app: it gets the signals, and hold ends with it
 *   run BYTES             run the strings that follow as a command beside the app, and discard its output
 *   wait PID              report the state of a child
 *   kill PID              kill a command started by `run`, with its process group
 *   release               the app is about to be replaced: hold does not end with it
 *   end CODE              exit with CODE
 *
 * A reply is one line, `understudy/1 WORD NUMBER UNIX_NS`; the words are in order_word.
 */

enum {
	ORDER_LINE_MAX = 128,
	ORDER_KEY_LENGTH = 32,
	ORDER_ARGUMENT_BYTES_MAX = 32768,
	ORDER_ARGUMENTS_MAX = 256,
	ORDER_REQUEST_MAX = ORDER_LINE_MAX + ORDER_ARGUMENT_BYTES_MAX,
	ORDER_PID_MAX = 4194304,
};

enum order_verb {
	ORDER_STATE,
	ORDER_START,
	ORDER_ADOPT,
	ORDER_RELEASE,
	ORDER_END,
	ORDER_RUN,
	ORDER_WAIT,
	ORDER_KILL,
};

enum order_parse { ORDER_INCOMPLETE, ORDER_MALFORMED, ORDER_COMPLETE };

struct order {
	enum order_verb verb;
	const char *key; /* ORDER_KEY_LENGTH bytes inside the parsed bytes, or NULL: none was given */
	int64_t number; /* the pid, the code, or the number of bytes of arguments */
	const char *arguments; /* start, run: `count` NUL-terminated strings inside the parsed bytes */
	size_t count;
};

enum order_word {
	WORD_HOLDING, /* no app; number 0 */
	WORD_RUNNING, /* number: pid of the app */
	WORD_STARTED, /* number: its pid; the exec has succeeded */
	WORD_ADOPTED, /* number: its pid */
	WORD_RELEASED, /* number: pid of the former app, 0 if there was none */
	WORD_ENDING, /* number: the code */
	WORD_KILLED, /* number: its pid */
	WORD_BUSY, /* refused: there is an app; number: its pid */
	WORD_DIED, /* the pid to adopt or to wait for has ended; number: its exit code, or 128 + signal */
	WORD_UNKNOWN, /* refused: the pid is no child of hold, or none that may be killed; number: that pid */
	WORD_FAILED, /* the command could not be run; number: errno */
	WORD_DENIED, /* the peer may not give orders; number 0 */
	WORD_MALFORMED, /* number 0 */
};

/* Parses one order from the bytes received so far. Pure; reads nothing beyond `length`. */
enum order_parse order_parse(const char *bytes, size_t length, struct order *order);

/* Writes a reply and returns its length, 0 if it does not fit. */
size_t order_format_reply(char *out, size_t size, enum order_word word, int64_t number, int64_t unix_ns);

#endif
