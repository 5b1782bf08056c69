/*
 * A made-up libefml for tests. It answers from a plain-text description that it reads anew at each
 * call, so that a test can change it at any time. The description is the file beside the library, named
 * like it with ".txt" at the end.
 *
 * Each line is a function, a key and an answer:
 *
 *     EfmlGetDevCount - 2
 *     EfmlGetDevName 0 Enflame S60
 *     EfmlGetDevMem 0 45063602176 1024
 *     EfmlGetDevClusterUsage 0.3 12.5
 *
 * The key is the index of a card, "index.part" for a part of one, and "-" for the host. Numbers stand
 * in the order of the struct. Answers that start with "!":
 *
 *     !254        return this code
 *     !hang       do not return while the line is there
 *     !slow N     return after N ms with the code "failure"
 *     !fill X     a text of 128 times X, without an end
 *     !bytes HEX  a text of these bytes
 *
 * No line at all is "not supported". Calls are counted; the file ".calls" beside the library gets one
 * line for each EfmlInit and EfmlShutdown.
 *
 * With OMIT_OPTIONAL only the functions that every library has are built.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, UNINITIALISED = 1, NOT_SUPPORTED = 3, TIMEOUT = 253, FAILURE = 254, LINE = 8192, TEXT = 128 };

typedef struct { char name[128]; uint32_t vendor, device, domain, bus, dev, func, logical; } dev_info;
typedef struct { uint64_t total; uint32_t used; } mem_info;
typedef struct { float capability, current; } pwr_info;
typedef struct { float asic, mem, board; } temp_info;
typedef struct { uint32_t hbm, core; } clk_info;
typedef struct { uint32_t speed, max_speed, width, max_width; } link_info;
typedef struct { float tx, rx; uint64_t tx_nak, rx_nak; } throughput_info;
typedef struct { uint8_t enabled, pending, blacklist; uint32_t single, dbl; } ecc_info;
typedef struct { uint8_t supported, flagged; uint32_t dbl; } rma_info;
typedef struct {
	uint32_t connected;
	char uuid[16];
	uint32_t vendor, device, domain, bus, dev, func, port, port_type, remote_card;
	char remote_uuid[16];
	uint32_t remote_vendor, remote_device, remote_domain, remote_bus, remote_dev, remote_func, remote_port, remote_port_type;
} port_info;
typedef struct { uint32_t pid; uint64_t device, system; } process_info;
typedef struct { uint32_t id, type; char message[128]; } event_info;
typedef struct { uint64_t id; uint32_t reset; uint32_t source; uint64_t time; uint32_t bdf; } record_info;

static void here(char *path, size_t size, const char *suffix)
{
	Dl_info info;
	path[0] = 0;
	if (dladdr((void *)here, &info) && info.dli_fname)
		snprintf(path, size, "%s%s", info.dli_fname, suffix);
}

static void log_call(const char *what)
{
	char path[4096];
	FILE *f;
	here(path, sizeof path, ".calls");
	f = fopen(path, "a");
	if (f) {
		fprintf(f, "%s\n", what);
		fclose(f);
	}
}

/* find returns the answer to a function and key in buf, or NULL. */
static char *find(const char *function, const char *key, char *buf)
{
	char path[4096], line[LINE], f[64], k[32];
	int at;
	char *found = NULL;
	FILE *file;
	here(path, sizeof path, ".txt");
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		at = 0;
		if (sscanf(line, "%63s %31s %n", f, k, &at) < 2 || !at || strcmp(f, function) || strcmp(k, key))
			continue;
		strcpy(buf, line + at);
		found = buf;
		break;
	}
	if (file)
		fclose(file);
	return found;
}

static void nap(long ms)
{
	struct timespec t = { ms / 1000, (ms % 1000) * 1000000 };
	nanosleep(&t, NULL);
}

static int initialised;

/* answer finds the answer; it returns a code, and OK where buf has something to be read. */
static uint32_t answer(const char *function, const char *key, char *buf)
{
	char *a = find(function, key, buf);
	if (strcmp(function, "EfmlInit") && !initialised)
		return UNINITIALISED;
	if (a && !strcmp(a, "!hang")) {
		while (a && !strcmp(a, "!hang")) {
			nap(3);
			a = find(function, key, buf);
		}
		return FAILURE;
	}
	if (!a)
		return NOT_SUPPORTED;
	if (!strncmp(a, "!slow ", 6)) {
		nap(atol(a + 6));
		return FAILURE;
	}
	if (a[0] == '!' && a[1] >= '0' && a[1] <= '9') {
		uint32_t code = strtoul(a + 1, NULL, 10);
		if (code == UNINITIALISED || code == 6)
			initialised = 0;
		return code;
	}
	return OK;
}

static uint32_t card_answer(const char *function, uint32_t index, char *buf)
{
	char key[32];
	snprintf(key, sizeof key, "%u", index);
	return answer(function, key, buf);
}

static uint32_t part_answer(const char *function, uint32_t index, uint32_t part, char *buf)
{
	char key[32];
	snprintf(key, sizeof key, "%u.%u", index, part);
	return answer(function, key, buf);
}

static void put_text(char *out, const char *a)
{
	size_t i;
	if (!strncmp(a, "!fill ", 6)) {
		memset(out, a[6], TEXT);
	} else if (!strncmp(a, "!bytes ", 7)) {
		memset(out, 0, TEXT);
		for (i = 0, a += 7; a[0] && a[1] && i < TEXT; a += 2, i++) {
			char two[3] = { a[0], a[1], 0 };
			out[i] = (char)strtoul(two, NULL, 16);
		}
	} else {
		strncpy(out, a, TEXT - 1);
		out[TEXT - 1] = 0;
	}
}

static uint32_t next_u32(char **a) { return (uint32_t)strtoll(*a, a, 0); }
static uint64_t next_u64(char **a) { return strtoull(*a, a, 0); }
static float next_f32(char **a) { return strtof(*a, a); }

uint32_t EfmlInit(uint8_t no_driver)
{
	char buf[LINE];
	uint32_t code = answer("EfmlInit", "-", buf);
	log_call(no_driver ? "init without driver" : "init");
	if (code == NOT_SUPPORTED)
		code = OK; /* no line: it works */
	if (code == OK)
		initialised = 1;
	return code;
}

void EfmlShutdown(void)
{
	log_call("shutdown");
	initialised = 0;
}

uint32_t EfmlGetDevCount(uint32_t *out)
{
	char buf[LINE], *a = buf;
	uint32_t code = answer("EfmlGetDevCount", "-", buf);
	if (code == OK)
		*out = next_u32(&a);
	return code;
}

uint32_t EfmlGetDevInfo(uint32_t index, dev_info *out)
{
	char buf[LINE], *a = buf;
	uint32_t code = card_answer("EfmlGetDevInfo", index, buf);
	if (code == OK) {
		memset(out, 0, sizeof *out);
		strcpy(out->name, "card");
		out->vendor = next_u32(&a);
		out->device = next_u32(&a);
		out->domain = next_u32(&a);
		out->bus = next_u32(&a);
		out->dev = next_u32(&a);
		out->func = next_u32(&a);
		out->logical = index;
	}
	return code;
}

#ifndef OMIT_OPTIONAL

#define HOST_TEXT(function)                                             \
	uint32_t function(char *out)                                    \
	{                                                               \
		char buf[LINE];                                         \
		uint32_t code = answer(#function, "-", buf);            \
		if (code == OK)                                         \
			put_text(out, buf);                             \
		return code;                                            \
	}
#define CARD_TEXT(function)                                             \
	uint32_t function(uint32_t index, char *out)                    \
	{                                                               \
		char buf[LINE];                                         \
		uint32_t code = card_answer(#function, index, buf);     \
		if (code == OK)                                         \
			put_text(out, buf);                             \
		return code;                                            \
	}
/* CARD reads the answer about a card into *out by the statements of body, which use the cursor a. */
#define CARD(function, type, body)                                      \
	uint32_t function(uint32_t index, type *out)                    \
	{                                                               \
		char buf[LINE], *a = buf;                               \
		uint32_t code = card_answer(#function, index, buf);     \
		if (code == OK) { body }                                \
		return code;                                            \
	}
#define PART(function, type, body)                                      \
	uint32_t function(uint32_t index, uint32_t part, type *out)     \
	{                                                               \
		char buf[LINE], *a = buf;                               \
		uint32_t code = part_answer(#function, index, part, buf); \
		if (code == OK) { body }                                \
		return code;                                            \
	}
#define U32 *out = next_u32(&a);
#define F32 *out = next_f32(&a);
#define BOOL *out = (uint8_t)next_u32(&a);
#define LINK out->speed = next_u32(&a); out->max_speed = next_u32(&a); out->width = next_u32(&a); out->max_width = next_u32(&a);
#define MEM out->total = next_u64(&a); out->used = next_u32(&a);

HOST_TEXT(EfmlGetDriverVer)
HOST_TEXT(EfmlGetLibVer)
CARD_TEXT(EfmlGetDevName)
CARD_TEXT(EfmlGetDevSKU)
CARD_TEXT(EfmlGetDevUuid)
CARD_TEXT(EfmlGetDevSn)
CARD_TEXT(EfmlGetDevPn)
CARD_TEXT(EfmlGetDevMfd)
CARD_TEXT(EfmlGetFwVersion)
CARD_TEXT(EfmlGetHwArchName)
CARD_TEXT(EfmlGetDevSlotOamName)
CARD_TEXT(EfmlGetAffinityCpuList)
CARD(EfmlGetDevMem, mem_info, MEM)
CARD(EfmlGetDevPwr, pwr_info, out->capability = next_f32(&a); out->current = next_f32(&a);)
CARD(EfmlGetDevTempV2, temp_info, out->asic = next_f32(&a); out->mem = next_f32(&a); out->board = next_f32(&a);)
CARD(EfmlGetDevClk, clk_info, out->hbm = next_u32(&a); out->core = next_u32(&a);)
CARD(EfmlGetDevDtuUsage, float, F32)
CARD(EfmlGetDevDtuUsageAsync, float, F32)
CARD(EfmlGetDevSipUsage, float, F32)
CARD(EfmlGetClusterCount, uint32_t, U32)
PART(EfmlGetDevClusterUsage, float, F32)
CARD(EfmlGetPGCount, uint32_t, U32)
PART(EfmlGetDevPGUsage, float, F32)
CARD(EfmlGetPcieLinkInfo, link_info, LINK)
CARD(EfmlGetPcieThroughput, throughput_info,
     out->tx = next_f32(&a); out->rx = next_f32(&a); out->tx_nak = next_u64(&a); out->rx_nak = next_u64(&a);)
CARD(EfmlGetDevEccStatus, ecc_info,
     out->enabled = next_u32(&a); out->pending = next_u32(&a); out->blacklist = next_u32(&a);
     out->single = next_u32(&a); out->dbl = next_u32(&a);)
CARD(EfmlGetDevRmaDetails, rma_info, out->supported = next_u32(&a); out->flagged = next_u32(&a); out->dbl = next_u32(&a);)
CARD(EfmlGetDevHealth, uint8_t, BOOL)
CARD(EfmlGetPowerMode, uint32_t, U32)
CARD(EfmlGetGcuVirtStatus, uint32_t, U32)
CARD(EfmlGetNumaNode, int32_t, *out = (int32_t)next_u32(&a);)
CARD(EfmlGetGcuLareIsSupported, uint8_t, BOOL)
CARD(EfmlGetGcuLarePortNum, uint32_t, U32)
PART(EfmlGetGcuLarePortInfo, port_info,
     memset(out, 0, sizeof *out); out->connected = next_u32(&a); out->remote_domain = next_u32(&a);
     out->remote_bus = next_u32(&a); out->remote_dev = next_u32(&a); out->remote_func = next_u32(&a);
     out->remote_port = next_u32(&a); out->port = part;)
PART(EfmlGetGcuLareLinkInfo, link_info, LINK)
CARD(EfmlGetVdevCount, uint32_t, U32)
PART(EfmlGetVdevMem, mem_info, MEM)
PART(EfmlGetVdevDtuUsage, float, F32)

/* The answer is the count, then three numbers per process. The caller's room is respected. */
uint32_t EfmlGetProcessInfo(uint32_t index, uint32_t *count, process_info *out)
{
	char buf[LINE], *a = buf;
	uint32_t i, room = *count, code = card_answer("EfmlGetProcessInfo", index, buf);
	if (code != OK)
		return code;
	*count = next_u32(&a);
	for (i = 0; i < *count && i < room; i++) {
		out[i].pid = next_u32(&a);
		out[i].device = next_u64(&a);
		out[i].system = next_u64(&a);
	}
	return OK;
}

/* The answer is the total, then five numbers per record. */
uint32_t EfmlGetErrorRecords(uint32_t index, uint32_t want, record_info *out, uint32_t *total)
{
	char buf[LINE], *a = buf;
	uint32_t i, code = card_answer("EfmlGetErrorRecords", index, buf);
	if (code != OK)
		return code;
	*total = next_u32(&a);
	for (i = 0; i < *total && i < want; i++) {
		out[i].id = next_u64(&a);
		out[i].reset = next_u32(&a);
		out[i].source = next_u32(&a);
		out[i].time = next_u64(&a);
		out[i].bdf = next_u32(&a);
	}
	return OK;
}

/* Events are numbered by their keys from 1; each is told once: id, type, message. */
uint32_t EfmlGetEvent(int32_t timeout_ms, event_info *out)
{
	static uint32_t told;
	char buf[LINE], *a = buf;
	uint32_t code;
	for (; timeout_ms >= 0; timeout_ms -= 5, nap(5)) {
		code = card_answer("EfmlGetEvent", told + 1, buf);
		if (code == OK) {
			told++;
			out->id = next_u32(&a);
			out->type = next_u32(&a);
			put_text(out->message, a + (*a == ' '));
			return OK;
		}
		if (code != NOT_SUPPORTED)
			return code;
		if (answer("EfmlGetEvent", "-", buf) != OK)
			return NOT_SUPPORTED;
	}
	return TIMEOUT;
}

#define SIZE(type) n += snprintf(out + n, size - n, #type " %zu\n", sizeof(type));
#define AT(type, field) n += snprintf(out + n, size - n, #type "." #field " %zu\n", offsetof(type, field));

/* StubLayout writes what the compiler made of the structs: "type size" and "type.field offset". */
uint32_t StubLayout(char *out, uint32_t size)
{
	uint32_t n = 0;
	SIZE(dev_info) AT(dev_info, vendor) AT(dev_info, logical)
	SIZE(mem_info) AT(mem_info, used)
	SIZE(pwr_info) AT(pwr_info, current)
	SIZE(temp_info) AT(temp_info, mem) AT(temp_info, board)
	SIZE(clk_info) AT(clk_info, core)
	SIZE(link_info) AT(link_info, max_speed) AT(link_info, width) AT(link_info, max_width)
	SIZE(throughput_info) AT(throughput_info, rx) AT(throughput_info, tx_nak) AT(throughput_info, rx_nak)
	SIZE(ecc_info) AT(ecc_info, pending) AT(ecc_info, blacklist) AT(ecc_info, single) AT(ecc_info, dbl)
	SIZE(rma_info) AT(rma_info, flagged) AT(rma_info, dbl)
	SIZE(port_info) AT(port_info, uuid) AT(port_info, vendor) AT(port_info, port_type) AT(port_info, remote_card)
	AT(port_info, remote_uuid) AT(port_info, remote_vendor) AT(port_info, remote_bus) AT(port_info, remote_port_type)
	SIZE(process_info) AT(process_info, device) AT(process_info, system)
	SIZE(event_info) AT(event_info, type) AT(event_info, message)
	SIZE(record_info) AT(record_info, reset) AT(record_info, source) AT(record_info, time) AT(record_info, bdf)
	return n;
}

#endif
