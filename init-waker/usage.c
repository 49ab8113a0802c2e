#include "usage.h"

int usage(FILE *out, int code)
{
	fputs("usage: waker wait --port PORT --token-sha256 HEX [--bind ADDRESS] [--install DIR]... [--socket PATH]\n"
	      "                  [--stay] [--quiet]\n"
	      "           listen, and exit 0 when the peer sends the token with that SHA-256 (port 0: any free one);\n"
	      "           with --stay stay, and answer GET /opened from then on, whoever asked before included\n"
	      "       waker hold [--dir DIR] [--stop-signal NUMBER] [--] [COMMAND [ARGUMENT...]]\n"
	      "           do nothing until an order comes through DIR/hold.sock, then be the parent of the app\n"
	      "       waker if-app --dir DIR [--] COMMAND [ARGUMENT...]\n"
	      "           run the command if the hold of DIR has an app, else exit 0\n"
	      "       waker install DIR...\n"
	      "           make each DIR if it is not there, for any user, and copy this program to DIR/waker\n"
	      "       waker version\n",
	      out);
	return code;
}
