/*
 * oltsim: simulates SNMP v1/v2c agents of GPON OLTs (Huawei MA5800-like), for benchmarks.
 *
 * One file, Linux, no libraries: gcc -O2 -o oltsim oltsim.c. `python3 dev.py bench` builds it.
 * It costs a small part of the CPU of any client, so that a benchmark measures the client.
 *
 * It serves a table of P PON ports x K ONUs with 8 columns (Huawei OIDs, index ifIndex.onuId),
 * the system group, an interface table with Counter64, and a group of rare types.
 * An agent answers any number of requests at once after a latency, or is serial: one request
 * at a time, with a service time per request, varbind and optical row. `oltsim -h` lists the rest.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void usage(void)
{
    fputs(
"usage: oltsim [options]\n"
" endpoints\n"
"  -a IP        first address                       (127.0.0.1)\n"
"  -p PORT      first UDP port                      (1161)\n"
"  -n N         number of agents                    (1)\n"
"  -s ip|port   agents differ by address or by port (ip: 127.0.0.1, .2, ...)\n"
"  -c STR       community                           (public)\n"
" table (8 columns, index ifIndex.onuId, ifIndex = 0xFA000000 + slot<<13 + port<<8)\n"
"  -P N         PON ports (16 per slot)             (16)\n"
"  -K N         ONUs per PON port                   (64)\n"
"  -H PCT       holes: this % of ONUs have no rx/tx power/distance instance (0)\n"
"  -D           distinct tables (seed) for each agent; otherwise one table is shared\n"
"  -d PCT       drift: each second this % of ONUs get new powers, a fiftieth of them also status and cause (0)\n"
" behaviour\n"
"  -m BYTES     maximum response size               (1400; up to 65507)\n"
"  -M N         maximum repetitions honoured        (0 = no limit)\n"
"  -l MS        latency of each response (requests overlap)           (0)\n"
"  -j MS        additional uniform random latency 0..MS               (0)\n"
"  -L PCT       random loss of responses, %         (0)\n"
"  -S           serial: an agent serves one request at a time\n"
"  -R US        serial: service time per request, us     (0)\n"
"  -V US        serial: service time per varbind, us     (0)\n"
"  -O US        serial: service time per ONU row touched in the optical columns (51.*), us (0)\n"
"  -Q N         serial: queue limit, further requests are dropped (0 = no limit)\n"
" faults\n"
"  -F MODE[,..] loop      GETNEXT/GETBULK jump back to the start of the table at PON 1\n"
"               same      GETNEXT/GETBULK answer the OID asked, at PON 1\n"
"               generr    any request that touches PON 1 answers genErr\n"
"               toobig    GETBULK answers tooBig instead of a truncated list\n"
"               empty     GETBULK answers noError with an empty list at PON 1\n"
"               short     GET answers only the first half of the varbinds asked\n"
"               badid     response has another request-id\n"
"               badcomm   response has another community\n"
"               otheraddr response leaves from another local address\n"
"               dup       each response is sent twice\n"
"               garbage   response is random bytes\n"
"               trunc     response is cut at a random place\n"
"               flip      response has 1..4 random bytes changed\n"
"               nobulk    GETBULK is never answered\n"
"               any of them with -f PCT applies to that % of responses (100)\n"
"  -f PCT\n"
" other\n"
"  -e SEED      random seed (1)\n"
"  -T SEC       exit after SEC seconds\n"
"  -W FILE      log a line per request: arrival us, agent, client port, pdu, varbinds answered, optical rows, answer due us\n"
"  -q           no line at start; statistics are printed at exit and at SIGUSR1 (stderr)\n"
" OIDs: B=1.3.6.1.4.1.2011.6.128.1.1.2\n"
"  B.43.1.3 serial OCTETS(8)   B.43.1.9 description OCTETS   B.46.1.15 status INT(1,2)\n"
"  B.46.1.20 distance INT      B.46.1.22 last up DateAndTime    B.46.1.24 last-down-cause INT\n"
"  B.51.1.3 tx power INT .01dBm  B.51.1.4 rx power INT .01dBm (2147483647 = offline)\n"
"  B.21.1.16.<ifIndex> ONUs on the port\n"
"  1.3.6.1.2.1.1.{1..6}.0 system; 1.3.6.1.2.1.31.1.1.1.{1,6,10}.<ifIndex> ifName, HC octets\n"
"  1.3.6.1.4.1.99999.1.{1..9}.0 Counter64 max, Opaque float, IpAddress, OID, Gauge32 max,\n"
"    negative INTEGER, Counter64 2^63, empty OCTETS, Opaque double\n", stderr);
}

/* ------------------------------------------------------------------ objects */
#define MAXSUB 32
typedef struct {
    uint32_t key[MAXSUB];  /* sub-identifiers in network byte order: memcmp sorts */
    uint8_t nsub;
    uint8_t oidlen;        /* length of the OID TLV inside the varbind */
    uint8_t pon1;          /* belongs to the second PON port (index 1): faults */
    uint8_t kind;          /* 0 static, else column number for drift */
    uint32_t onu;          /* row number, for the cost of optical reads */
    uint32_t off;          /* varbind TLV in arena */
    uint16_t len;
    uint16_t valoff;       /* offset of the value TLV within the varbind */
} obj_t;

typedef struct {
    obj_t *o;
    size_t n, cap;
    uint8_t *arena;
    size_t alen, acap;
    double owed;           /* part of a change that drift has not made yet */
} mib_t;

static int P = 16, K = 64, nagents = 1, baseport = 1161, step_port = 0, distinct = 0;
static int serial_mode = 0, qlimit = 0, maxrep_limit = 0, quiet = 0;
static unsigned maxsize = 1400;
static double latency_ms = 0, jitter_ms = 0, loss_pct = 0, svc_req_us = 0, svc_vb_us = 0, svc_row_us = 0;
static double holes_pct = 0, drift_pct = 0, fault_pct = 100, run_secs = 0;
static const char *baseip = "127.0.0.1", *community = "public";
static uint64_t rng = 0x9E3779B97F4A7C15ull;
enum { F_LOOP = 1, F_SAME = 2, F_GENERR = 4, F_TOOBIG = 8, F_EMPTY = 16, F_BADID = 32,
       F_BADCOMM = 64, F_OTHER = 128, F_DUP = 256, F_GARB = 512, F_TRUNC = 1024,
       F_FLIP = 2048, F_NOBULK = 4096, F_SHORT = 8192 };
static unsigned faults = 0;

static inline uint64_t rnd(void)
{
    rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17;
    return rng;
}
static inline double rndf(void) { return (rnd() >> 11) * (1.0 / 9007199254740992.0); }

static uint32_t *row_stamp, row_no; static int opt_rows;
static FILE *logf_;

static uint64_t st_req, st_resp, st_vb, st_lost, st_qdrop, st_toobig, st_bad, st_badcomm,
                st_bytes_in, st_bytes_out, st_maxq;

static size_t put_len(uint8_t *p, size_t n)
{
    if (n < 128) { p[0] = n; return 1; }
    if (n < 256) { p[0] = 0x81; p[1] = n; return 2; }
    p[0] = 0x82; p[1] = n >> 8; p[2] = n; return 3;
}

static size_t enc_oid(uint8_t *p, const uint32_t *sub, int n)
{
    uint8_t tmp[MAXSUB * 5]; size_t l = 0;
    for (int i = 1; i < n; i++) {
        uint32_t v = i == 1 ? sub[0] * 40 + sub[1] : sub[i];
        int sh = 28;
        while (sh && !(v >> sh)) sh -= 7;
        for (; sh; sh -= 7) tmp[l++] = 0x80 | ((v >> sh) & 0x7f);
        tmp[l++] = v & 0x7f;
    }
    p[0] = 6;
    size_t h = 1 + put_len(p + 1, l);
    memcpy(p + h, tmp, l);
    return h + l;
}
static size_t enc_int(uint8_t *p, int64_t v, uint8_t tag)
{
    int n = 1;
    while (n < 8 && (v >> (n * 8 - 1)) != 0 && (v >> (n * 8 - 1)) != -1) n++;
    p[0] = tag; p[1] = n;
    for (int i = 0; i < n; i++) p[2 + i] = v >> ((n - 1 - i) * 8);
    return 2 + n;
}
static size_t enc_uint(uint8_t *p, uint64_t v, uint8_t tag)
{
    if (v >> 63) {                       /* 9 bytes, leading zero */
        p[0] = tag; p[1] = 9; p[2] = 0;
        for (int i = 0; i < 8; i++) p[3 + i] = v >> ((7 - i) * 8);
        return 11;
    }
    return enc_int(p, (int64_t)v, tag);
}
static size_t enc_oct(uint8_t *p, const void *s, size_t n, uint8_t tag)
{
    p[0] = tag;
    size_t h = 1 + put_len(p + 1, n);
    memcpy(p + h, s, n);
    return h + n;
}

static obj_t *add(mib_t *m, const uint32_t *sub, int n, const uint8_t *val, size_t vlen)
{
    if (m->n == m->cap) { m->cap = m->cap ? m->cap * 2 : 1024; m->o = realloc(m->o, m->cap * sizeof(obj_t)); }
    if (m->alen + 512 > m->acap) { m->acap = m->acap ? m->acap * 2 : 65536; m->arena = realloc(m->arena, m->acap); }
    obj_t *o = &m->o[m->n++];
    memset(o, 0, sizeof *o);
    for (int i = 0; i < n; i++) o->key[i] = htonl(sub[i]);
    o->nsub = n;
    uint8_t oid[MAXSUB * 5 + 4];
    size_t ol = enc_oid(oid, sub, n);
    uint8_t *p = m->arena + m->alen;
    p[0] = 0x30;
    size_t h = 1 + put_len(p + 1, ol + vlen);
    memcpy(p + h, oid, ol);
    memcpy(p + h + ol, val, vlen);
    o->off = m->alen; o->len = h + ol + vlen; o->oidlen = ol; o->valoff = h + ol;
    m->alen += o->len;
    return o;
}
static int parse_oid(const char *s, uint32_t *sub)
{
    int n = 0;
    while (*s && n < MAXSUB) { sub[n++] = strtoul(s, (char **)&s, 10); if (*s == '.') s++; }
    return n;
}
static void add_s(mib_t *m, const char *oid, const uint8_t *v, size_t vl)
{
    uint32_t sub[MAXSUB]; int n = parse_oid(oid, sub);
    add(m, sub, n, v, vl);
}
static const mib_t *sort_mib;
static int cmp_key(const uint32_t *a, int na, const uint32_t *b, int nb)
{
    int c = memcmp(a, b, 4 * (na < nb ? na : nb));
    return c ? c : na - nb;
}
static int cmp_obj(const void *a, const void *b)
{
    const obj_t *x = a, *y = b;
    return cmp_key(x->key, x->nsub, y->key, y->nsub);
}
static uint32_t if_index(int pon) { return 0xFA000000u + ((uint32_t)(pon / 16 + 1) << 13) + ((uint32_t)(pon % 16) << 8); }

static int onu_online(uint32_t r) { return (r % 100) >= 7; }

static void build(mib_t *m, int agent)
{
    uint8_t v[300]; char s[200]; size_t l;
    memset(m, 0, sizeof *m);
    snprintf(s, sizeof s, "oltsim Huawei Integrated Access Software, %d PON x %d ONU", P, K);
    add_s(m, "1.3.6.1.2.1.1.1.0", v, enc_oct(v, s, strlen(s), 4));
    uint32_t so[] = {1,3,6,1,4,1,2011,2,248};
    add_s(m, "1.3.6.1.2.1.1.2.0", v, enc_oid(v, so, 9));
    add_s(m, "1.3.6.1.2.1.1.3.0", v, enc_uint(v, 1234567, 0x43));
    add_s(m, "1.3.6.1.2.1.1.4.0", v, enc_oct(v, "noc@example", 11, 4));
    snprintf(s, sizeof s, "olt-%d", agent);
    add_s(m, "1.3.6.1.2.1.1.5.0", v, enc_oct(v, s, strlen(s), 4));
    add_s(m, "1.3.6.1.2.1.1.6.0", v, enc_oct(v, "lab", 3, 4));
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < P; p++) {
            uint32_t sub[] = {1,3,6,1,2,1,31,1,1,1, c == 0 ? 1 : c == 1 ? 6 : 10, if_index(p)};
            if (c == 0) { snprintf(s, sizeof s, "GPON 0/%d/%d", p / 16 + 1, p % 16); l = enc_oct(v, s, strlen(s), 4); }
            else l = enc_uint(v, rnd() >> 16, 0x46);
            add(m, sub, 12, v, l);
        }
    for (int p = 0; p < P; p++) {
        uint32_t sub[] = {1,3,6,1,4,1,2011,6,128,1,1,2,21,1,16,if_index(p)};
        add(m, sub, 16, v, enc_int(v, K, 2));
    }
    static const uint32_t cols[8][2] = {{43,3},{43,9},{46,15},{46,20},{46,22},{46,24},{51,3},{51,4}};
    uint64_t seed0 = 0x1234567ull + (distinct ? (uint64_t)agent * 7919 : 0);
    for (int c = 0; c < 8; c++)
        for (int p = 0; p < P; p++)
            for (int k = 0; k < K; k++) {
                uint64_t h = (seed0 + (uint64_t)p * 131071 + k) * 0x9E3779B97F4A7C15ull; h ^= h >> 29; h *= 0xBF58476D1CE4E5B9ull; h ^= h >> 32;
                uint32_t r = (uint32_t)h; int on = onu_online(r);
                int hole = holes_pct > 0 && (double)(r >> 8 & 0xffff) / 655.36 < holes_pct;
                uint32_t sub[] = {1,3,6,1,4,1,2011,6,128,1,1,2,cols[c][0],1,cols[c][1],if_index(p),(uint32_t)k};
                switch (c) {
                case 0: { uint8_t sn[8] = {'H','W','T','C', distinct ? agent >> 8 : r >> 24, distinct ? agent : r >> 16, p, k}; l = enc_oct(v, sn, 8, 4); break; }
                case 1: snprintf(s, sizeof s, "cust-%06u %s-%03d/%02d", r % 1000000, "street", p, k); l = enc_oct(v, s, strlen(s), 4); break;
                case 2: l = enc_int(v, on ? 1 : 2, 2); break;
                case 3: if (hole) continue;
                        l = enc_int(v, on ? 200 + (int)(r % 19000) : -1, 2); break;
                case 4: { uint8_t dt[8] = {2026 >> 8, 2026 & 255, 1 + r % 12, 1 + r / 12 % 28, r / 400 % 24, r / 9600 % 60, r / 576000 % 60, 0}; l = enc_oct(v, dt, 8, 4); break; }
                case 5: l = enc_int(v, 1 + (int)(r >> 5) % 13, 2); break;
                case 6: if (hole) continue;
                        l = enc_int(v, on ? 150 + (int)(r % 250) : 2147483647, 2); break;
                default: if (hole) continue;
                        l = enc_int(v, on ? -1200 - (int)(r % 1700) : 2147483647, 2); break;
                }
                obj_t *o = add(m, sub, 17, v, l);
                o->pon1 = p == 1; o->kind = c + 1; o->onu = (uint32_t)(p * K + k);
            }
    add_s(m, "1.3.6.1.4.1.99999.1.1.0", v, enc_uint(v, 0xffffffffffffffffull, 0x46));
    { uint8_t f[7] = {0x9f, 0x78, 4, 0xc1, 0xac, 0xcc, 0xcd}; /* -21.6 */ add_s(m, "1.3.6.1.4.1.99999.1.2.0", v, enc_oct(v, f, 7, 0x44)); }
    { uint8_t ip[4] = {192, 0, 2, 7}; add_s(m, "1.3.6.1.4.1.99999.1.3.0", v, enc_oct(v, ip, 4, 0x40)); }
    add_s(m, "1.3.6.1.4.1.99999.1.4.0", v, enc_oid(v, so, 9));
    add_s(m, "1.3.6.1.4.1.99999.1.5.0", v, enc_uint(v, 0xffffffffu, 0x42));
    add_s(m, "1.3.6.1.4.1.99999.1.6.0", v, enc_int(v, -2147483648ll, 2));
    add_s(m, "1.3.6.1.4.1.99999.1.7.0", v, enc_uint(v, 1ull << 63, 0x46));
    add_s(m, "1.3.6.1.4.1.99999.1.8.0", v, enc_oct(v, "", 0, 4));
    { uint8_t f[11] = {0x9f, 0x79, 8, 0xc0, 0x35, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a}; add_s(m, "1.3.6.1.4.1.99999.1.9.0", v, enc_oct(v, f, 11, 0x44)); }
    sort_mib = m;
    qsort(m->o, m->n, sizeof(obj_t), cmp_obj);
    /* lay the arena out in sorted order: a bulk of one column is then one memcpy */
    uint8_t *na = malloc(m->alen); size_t a = 0;
    for (size_t i = 0; i < m->n; i++) { memcpy(na + a, m->arena + m->o[i].off, m->o[i].len); m->o[i].off = a; a += m->o[i].len; }
    free(m->arena); m->arena = na; m->acap = m->alen;
}

#define DRIFT_NS 50000000ll /* often, so that runs of a tenth of a second differ too */

/* in-place change of values whose encoded length stays the same */
static void drift(mib_t *m)
{
    m->owed += m->n * drift_pct / 100.0 * DRIFT_NS / 1e9;
    size_t k = (size_t)m->owed;
    m->owed -= k;
    for (size_t i = 0; i < k; i++) {
        obj_t *o = &m->o[rnd() % m->n];
        uint8_t *v = m->arena + o->off + o->valoff;
        uint32_t r = rnd();
        int x;
        switch (o->kind) {
        /* Powers move all the time; a state changes rarely. */
        case 3: if ((r >> 16) % 50 == 0) v[2] = onu_online(r) ? 1 : 2; break;
        case 6: if ((r >> 16) % 50 == 0) v[2] = 1 + r % 13; break;
        case 7: if (v[1] == 2) { x = 150 + r % 250; v[2] = x >> 8; v[3] = x; } break;
        case 8: if (v[1] == 2) { x = -1200 - (int)(r % 1700); v[2] = x >> 8; v[3] = x; } break;
        }
    }
}

/* first object with key > k (gt=1) or >= k (gt=0) */
static inline size_t find(const mib_t *m, const uint32_t *k, int n, int gt)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = cmp_key(m->o[mid].key, m->o[mid].nsub, k, n);
        if (c < 0 || (gt && c == 0)) lo = mid + 1; else hi = mid;
    }
    return lo;
}

/* ------------------------------------------------------------------ decoding */
typedef struct { const uint8_t *p, *e; } rd_t;
static int rd_hdr(rd_t *r, int *tag, size_t *len)
{
    if (r->e - r->p < 2) return -1;
    *tag = *r->p++;
    size_t l = *r->p++;
    if (l & 0x80) {
        int n = l & 0x7f; l = 0;
        if (n > 4 || n < 1 || r->e - r->p < n) return -1;
        while (n--) l = l << 8 | *r->p++;
    }
    if ((size_t)(r->e - r->p) < l) return -1;
    *len = l;
    return 0;
}
static int rd_int(rd_t *r, int64_t *v)
{
    int t; size_t l;
    if (rd_hdr(r, &t, &l) || t != 2 || l < 1 || l > 8) return -1;
    int64_t x = (int8_t)*r->p;
    for (size_t i = 1; i < l; i++) x = (int64_t)((uint64_t)x << 8 | r->p[i]);
    r->p += l; *v = x;
    return 0;
}
static int dec_oid(const uint8_t *p, size_t l, uint32_t *key)
{
    int n = 0; uint64_t v = 0; const uint8_t *e = p + l;
    if (!l) return 0;
    while (p < e) {
        v = 0;
        do { if (p >= e) return -1; v = v << 7 | (*p & 0x7f); } while (*p++ & 0x80);
        if (n == 0) {
            uint32_t a = v < 40 ? 0 : v < 80 ? 1 : 2;
            key[n++] = htonl(a); key[n++] = htonl((uint32_t)v - a * 40);
        } else { if (n >= MAXSUB) return -1; key[n++] = htonl((uint32_t)v); }
    }
    return n;
}

/* ------------------------------------------------------------------ agents */
typedef struct { int fd; mib_t *m; int64_t busy_until; int inq; } agent_t;
static agent_t *ag;
static int other_fd = -1;

typedef struct { int64_t due; int agent; struct sockaddr_in to; uint32_t len; uint8_t *buf; } pend_t;
static pend_t *heap; static size_t hn, hcap;
static void hpush(pend_t x)
{
    if (hn == hcap) { hcap = hcap ? hcap * 2 : 1024; heap = realloc(heap, hcap * sizeof *heap); }
    size_t i = hn++;
    while (i && heap[(i - 1) / 2].due > x.due) { heap[i] = heap[(i - 1) / 2]; i = (i - 1) / 2; }
    heap[i] = x;
    if (hn > st_maxq) st_maxq = hn;
}
static pend_t hpop(void)
{
    pend_t r = heap[0], x = heap[--hn]; size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= hn) break;
        if (c + 1 < hn && heap[c + 1].due < heap[c].due) c++;
        if (heap[c].due >= x.due) break;
        heap[i] = heap[c]; i = c;
    }
    heap[i] = x;
    return r;
}
static int64_t now_ns(void)
{
    struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

#define HDR 128
#define MAXVB 4096
static uint8_t scratch[HDR + 65600 + 1024];

/* An optical value is a live read from the ONU: its row costs time once per request, however many columns. */
static inline void touch(const obj_t *o)
{
    if (o->kind < 7) return;
    if (row_stamp[o->onu] != row_no) { row_stamp[o->onu] = row_no; opt_rows++; }
}

/* Build the response to in[0..n) in scratch; returns its start and length, 0 if none. */
static size_t answer(agent_t *a, const uint8_t *in, size_t n, uint8_t **out, int *nvb)
{
    rd_t r = {in, in + n}; int tag; size_t len; int64_t ver, f1, f2, reqid;
    if (rd_hdr(&r, &tag, &len) || tag != 0x30) return st_bad++, 0;
    if (rd_int(&r, &ver) || ver < 0 || ver > 1) return st_bad++, 0;
    if (rd_hdr(&r, &tag, &len) || tag != 4) return st_bad++, 0;
    const uint8_t *comm = r.p; size_t commlen = len; r.p += len;
    if (commlen != strlen(community) || memcmp(comm, community, commlen)) return st_badcomm++, 0;
    int pdu;
    if (rd_hdr(&r, &pdu, &len)) return st_bad++, 0;
    if (pdu != 0xA0 && pdu != 0xA1 && pdu != 0xA5) return st_bad++, 0;
    if (rd_int(&r, &reqid) || rd_int(&r, &f1) || rd_int(&r, &f2)) return st_bad++, 0;
    if (rd_hdr(&r, &tag, &len) || tag != 0x30) return st_bad++, 0;
    const uint8_t *vbl = r.p; size_t vbl_len = len;
    const uint8_t *vend = r.p + len;

    static const uint8_t *qoid[MAXVB]; static size_t qlen[MAXVB]; static size_t pos[MAXVB];
    static const obj_t *last[MAXVB];
    int nq = 0;
    while (r.p < vend && nq < MAXVB) {
        if (rd_hdr(&r, &tag, &len) || tag != 0x30) return st_bad++, 0;
        const uint8_t *nx = r.p + len;
        const uint8_t *ostart = r.p;
        if (rd_hdr(&r, &tag, &len) || tag != 6) return st_bad++, 0;
        qoid[nq] = ostart; qlen[nq] = r.p + len - ostart;
        uint32_t key[MAXSUB];
        int ns = dec_oid(r.p, len, key);
        if (ns < 0) return st_bad++, 0;
        const mib_t *m = a->m;
        if (pdu == 0xA0) {
            size_t i = find(m, key, ns, 0);
            pos[nq] = (i < m->n && cmp_key(m->o[i].key, m->o[i].nsub, key, ns) == 0) ? i : SIZE_MAX;
            if (pos[nq] == SIZE_MAX) {       /* noSuchObject (no such column) or noSuchInstance? */
                /* the column exists if an object shares all but the last two sub-ids */
                int pl = ns > 2 ? ns - 2 : 0;
                if (i < m->n && m->o[i].nsub > pl && !memcmp(m->o[i].key, key, 4 * pl)) pos[nq] = SIZE_MAX - 1;
                else if (i > 0 && m->o[i-1].nsub > pl && !memcmp(m->o[i-1].key, key, 4 * pl)) pos[nq] = SIZE_MAX - 1;
            }
        } else pos[nq] = find(m, key, ns, 1);
        nq++;
        r.p = nx;
    }
    const mib_t *m = a->m;
    row_no++; opt_rows = 0;
    unsigned fl = faults && (fault_pct >= 100 || rndf() * 100 < fault_pct) ? faults : 0;
    uint8_t *body = scratch + HDR; size_t bl = 0; int err = 0, eidx = 0, cnt = 0;
    /* room for the varbinds: total message must not exceed maxsize; headers: version 3,
       community 2+c, pdu hdr 4, reqid 6, err 3+3, list hdr 4, outer hdr 4 */
    size_t room = maxsize > 32 + commlen ? maxsize - 32 - commlen : 64;
    if (room > 65400) room = 65400;

    if (pdu == 0xA5 && (fl & F_NOBULK)) return 0;
    if (pdu != 0xA5) {
        if ((fl & F_SHORT) && pdu == 0xA0 && nq > 1) nq = (nq + 1) / 2;
        for (int i = 0; i < nq; i++) {
            size_t x = pos[i];
            if (x < m->n) {
                const obj_t *o = &m->o[x];
                if (o->pon1 && (fl & F_GENERR)) { err = 5; eidx = i + 1; break; }
                if (pdu == 0xA1 && o->pon1 && (fl & F_LOOP)) {
                    while (x > 0 && m->o[x - 1].kind == o->kind) x--;
                    o = &m->o[x];
                }
                if (pdu == 0xA1 && o->pon1 && (fl & F_SAME) && x > 0) o = &m->o[x - 1];
                if (bl + o->len > room) { err = 1; break; }
                memcpy(body + bl, m->arena + o->off, o->len); bl += o->len; cnt++; touch(o);
            } else {
                if (ver == 0) { err = 2; eidx = i + 1; break; }
                size_t il = qlen[i] + 2;
                if (bl + il + 4 > room) { err = 1; break; }
                body[bl++] = 0x30; bl += put_len(body + bl, il);
                memcpy(body + bl, qoid[i], qlen[i]); bl += qlen[i];
                body[bl++] = pdu == 0xA1 ? 0x82 : x == SIZE_MAX - 1 ? 0x81 : 0x80; body[bl++] = 0; cnt++;
            }
        }
    } else {
        int nonrep = f1 < 0 ? 0 : f1 > nq ? nq : (int)f1;
        int64_t maxrep = f2 < 0 ? 0 : f2;
        if (maxrep_limit && maxrep > maxrep_limit) maxrep = maxrep_limit;
        for (int i = 0; i < nq; i++) last[i] = NULL;
        int full = 0;
        for (int64_t rep = 0; rep < (nonrep ? (maxrep > 1 ? maxrep : 1) : maxrep) && !full; rep++) {
            int live = 0;
            for (int i = rep == 0 ? 0 : nonrep; i < nq; i++) {
                if (i >= nonrep && rep >= maxrep) break;
                size_t x = pos[i];
                if (x < m->n) {
                    const obj_t *o = &m->o[x];
                    if (o->pon1 && fl) {
                        if (fl & F_GENERR) { err = 5; eidx = i + 1; full = 1; break; }
                        if (fl & F_EMPTY) { bl = 0; cnt = 0; full = 1; break; }
                        if (fl & F_LOOP) { while (x > 0 && m->o[x - 1].kind == o->kind) x--; o = &m->o[x]; pos[i] = x; }
                        if ((fl & F_SAME) && x > 0) { o = &m->o[x - 1]; pos[i] = x - 1; }
                    }
                    if (bl + o->len > room) { full = 1; break; }
                    memcpy(body + bl, m->arena + o->off, o->len); bl += o->len; cnt++; touch(o);
                    last[i] = o; pos[i]++; live = 1;
                } else {
                    const uint8_t *q = qoid[i]; size_t ql = qlen[i];
                    if (last[i]) { q = m->arena + last[i]->off + last[i]->valoff - last[i]->oidlen; ql = last[i]->oidlen; }
                    size_t il = ql + 2;
                    if (bl + il + 4 > room) { full = 1; break; }
                    body[bl++] = 0x30; bl += put_len(body + bl, il);
                    memcpy(body + bl, q, ql); bl += ql;
                    body[bl++] = 0x82; body[bl++] = 0; cnt++;
                }
            }
            if (!live) break;
        }
        if (full && !err && (cnt == 0 || (fl & F_TOOBIG)) && !(fl & F_EMPTY)) err = 1;
    }
    if (err == 1) {                    /* tooBig: empty list (v2c) or the request's list (v1) */
        st_toobig++; bl = 0; cnt = 0;
        if (ver == 0) { memcpy(body, vbl, vbl_len); bl = vbl_len; }
    } else if (err) { memcpy(body, vbl, vbl_len); bl = vbl_len; cnt = 0; }

    /* header, written backwards */
    uint8_t h[8]; uint8_t *p = body;
    size_t k = put_len(h, bl); p -= k; memcpy(p, h, k); *--p = 0x30;
    *--p = eidx; *--p = 1; *--p = 2;
    *--p = err; *--p = 1; *--p = 2;
    uint8_t t[16];
    if (fl & F_BADID) reqid ^= 0x5555;
    k = enc_int(t, reqid, 2); p -= k; memcpy(p, t, k);
    size_t pl = body + bl - p;
    k = put_len(h, pl); p -= k; memcpy(p, h, k); *--p = 0xA2;
    p -= commlen; memcpy(p, comm, commlen);
    if (fl & F_BADCOMM) p[0] ^= 1;
    k = put_len(h, commlen); p -= k; memcpy(p, h, k); *--p = 4;
    *--p = ver; *--p = 1; *--p = 2;
    pl = body + bl - p;
    k = put_len(h, pl); p -= k; memcpy(p, h, k); *--p = 0x30;
    size_t total = body + bl - p;
    if (fl & F_GARB) for (size_t i = 0; i < total; i++) p[i] = rnd();
    if (fl & F_TRUNC) total = rnd() % total;
    if (fl & F_FLIP) for (int i = 1 + rnd() % 4; i; i--) p[rnd() % total] = rnd();
    *out = p; *nvb = cnt ? cnt : nq;
    st_vb += cnt;
    return total;
}

#define BATCH 32
static uint8_t inbuf[BATCH][65536];
static struct sockaddr_in from[BATCH];
static struct iovec iov[BATCH];
static struct mmsghdr mm[BATCH];

static void xmit(int i, const uint8_t *b, size_t n, const struct sockaddr_in *to)
{
    int fd = (faults & F_OTHER) && other_fd >= 0 ? other_fd : ag[i].fd;
    int times = (faults & F_DUP) ? 2 : 1;
    while (times--) {
        if (sendto(fd, b, n, 0, (const struct sockaddr *)to, sizeof *to) >= 0) { st_resp++; st_bytes_out += n; }
    }
}

/* batched direct answers (no latency): one arena of output, sendmmsg */
static uint8_t outbuf[BATCH * 2048];
static struct mmsghdr om[BATCH];
static struct iovec oiov[BATCH];

static void serve(int i)
{
    agent_t *a = &ag[i];
    for (int rounds = 0; rounds < 4; rounds++) {
        for (int j = 0; j < BATCH; j++) mm[j].msg_hdr.msg_namelen = sizeof from[j];
        int n = recvmmsg(a->fd, mm, BATCH, MSG_DONTWAIT, NULL);
        if (n <= 0) return;
        int direct = latency_ms <= 0 && jitter_ms <= 0 && !serial_mode && !(faults & (F_OTHER | F_DUP));
        int64_t t = direct ? 0 : now_ns();
        int no = 0; size_t ob = 0;
        for (int j = 0; j < n; j++) {
            st_req++; st_bytes_in += mm[j].msg_len;
            uint8_t *out; int nvb = 0;
            if (serial_mode && qlimit && a->inq >= qlimit) { st_qdrop++; continue; }
            size_t l = answer(a, inbuf[j], mm[j].msg_len, &out, &nvb);
            if (!l) continue;
            uint8_t pdu_tag = 0;
            if (logf_) { const uint8_t *q = inbuf[j]; size_t z = q[1] & 0x80 ? 2 + (q[1] & 0x7f) : 2; z += 3; z += 2 + q[z + 1]; pdu_tag = q[z]; }
            int lost = loss_pct > 0 && rndf() * 100 < loss_pct;
            if (lost) st_lost++;
            if (direct) {
                if (logf_) fprintf(logf_, "%ld %d %d %02X %d %d %ld\n", (long)(now_ns() / 1000), i, ntohs(from[j].sin_port), pdu_tag, nvb, opt_rows, (long)(now_ns() / 1000));
                if (lost) continue;
                if (ob + l > sizeof outbuf) {
                    if (no) { sendmmsg(a->fd, om, no, 0); st_resp += no; no = 0; ob = 0; }
                    if (l > sizeof outbuf) { xmit(i, out, l, &from[j]); continue; }
                }
                memcpy(outbuf + ob, out, l);
                oiov[no].iov_base = outbuf + ob; oiov[no].iov_len = l; ob += l;
                memset(&om[no].msg_hdr, 0, sizeof om[no].msg_hdr);
                om[no].msg_hdr.msg_iov = &oiov[no]; om[no].msg_hdr.msg_iovlen = 1;
                om[no].msg_hdr.msg_name = &from[j]; om[no].msg_hdr.msg_namelen = sizeof from[j];
                no++; st_bytes_out += l;
                continue;
            }
            int64_t due = t;
            if (serial_mode) {
                int64_t s = a->busy_until > t ? a->busy_until : t;
                s += (int64_t)((svc_req_us + svc_vb_us * nvb + svc_row_us * opt_rows) * 1000);
                a->busy_until = s; due = s;
            }
            due += (int64_t)((latency_ms + (jitter_ms > 0 ? rndf() * jitter_ms : 0)) * 1e6);
            if (logf_) fprintf(logf_, "%ld %d %d %02X %d %d %ld\n", (long)(t / 1000), i, ntohs(from[j].sin_port), pdu_tag, nvb, opt_rows, (long)(due / 1000));
            pend_t x = {due, i, from[j], lost ? 0 : l, NULL};
            if (!lost) { x.buf = malloc(l); memcpy(x.buf, out, l); }
            a->inq++;
            hpush(x);
        }
        if (no) { int s = sendmmsg(a->fd, om, no, 0); if (s > 0) st_resp += s; }
        if (n < BATCH) return;
    }
}

static volatile sig_atomic_t stop, dump;
static void on_sig(int s) { if (s == SIGUSR1) dump = 1; else stop = 1; }
static void stats(void)
{
    struct rusage ru; getrusage(RUSAGE_SELF, &ru);
    fprintf(stderr, "oltsim: requests %lu responses %lu varbinds %lu bytes_in %lu bytes_out %lu lost %lu "
            "queue_drops %lu tooBig %lu bad %lu bad_community %lu max_pending %lu cpu_s %.3f\n",
            st_req, st_resp, st_vb, st_bytes_in, st_bytes_out, st_lost, st_qdrop, st_toobig, st_bad,
            st_badcomm, st_maxq, ru.ru_utime.tv_sec + ru.ru_stime.tv_sec + (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6);
}

int main(int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "a:p:n:s:c:P:K:H:Dd:m:M:l:j:L:SR:V:O:Q:F:f:e:T:W:qh")) != -1) switch (c) {
        case 'a': baseip = optarg; break;
        case 'p': baseport = atoi(optarg); break;
        case 'n': nagents = atoi(optarg); break;
        case 's': step_port = !strcmp(optarg, "port"); break;
        case 'c': community = optarg; break;
        case 'P': P = atoi(optarg); break;
        case 'K': K = atoi(optarg); break;
        case 'H': holes_pct = atof(optarg); break;
        case 'D': distinct = 1; break;
        case 'd': drift_pct = atof(optarg); break;
        case 'm': maxsize = atoi(optarg); break;
        case 'M': maxrep_limit = atoi(optarg); break;
        case 'l': latency_ms = atof(optarg); break;
        case 'j': jitter_ms = atof(optarg); break;
        case 'L': loss_pct = atof(optarg); break;
        case 'S': serial_mode = 1; break;
        case 'R': svc_req_us = atof(optarg); break;
        case 'V': svc_vb_us = atof(optarg); break;
        case 'O': svc_row_us = atof(optarg); break;
        case 'W': logf_ = fopen(optarg, "w"); if (!logf_) { perror(optarg); return 1; } setvbuf(logf_, NULL, _IOFBF, 1 << 16); break;
        case 'Q': qlimit = atoi(optarg); break;
        case 'F': {
            static const struct { const char *n; unsigned f; } t[] = {{"loop",F_LOOP},{"same",F_SAME},{"generr",F_GENERR},
                {"toobig",F_TOOBIG},{"empty",F_EMPTY},{"badid",F_BADID},{"badcomm",F_BADCOMM},{"otheraddr",F_OTHER},{"dup",F_DUP},
                {"garbage",F_GARB},{"trunc",F_TRUNC},{"flip",F_FLIP},{"nobulk",F_NOBULK},{"short",F_SHORT}};
            for (char *s = strtok(optarg, ","); s; s = strtok(NULL, ",")) {
                int ok = 0;
                for (size_t i = 0; i < sizeof t / sizeof *t; i++) if (!strcmp(s, t[i].n)) { faults |= t[i].f; ok = 1; }
                if (!ok) { fprintf(stderr, "unknown fault %s\n", s); return 2; }
            }
            break; }
        case 'f': fault_pct = atof(optarg); break;
        case 'e': rng ^= (uint64_t)atoll(optarg) * 0xD1342543DE82EF95ull; break;
        case 'T': run_secs = atof(optarg); break;
        case 'q': quiet = 1; break;
        default: usage(); return c == 'h' ? 0 : 2;
    }
    if (maxsize > 65507) maxsize = 65507;
    if (P < 1 || K < 1 || nagents < 1) { usage(); return 2; }
    struct sigaction sa = {.sa_handler = on_sig};
    sigaction(SIGINT, &sa, NULL); sigaction(SIGTERM, &sa, NULL); sigaction(SIGUSR1, &sa, NULL);

    ag = calloc(nagents, sizeof *ag);
    mib_t *shared = NULL;
    int ep = epoll_create1(0);
    for (int i = 0; i < nagents; i++) {
        if (!row_stamp) row_stamp = calloc((size_t)P * K + 1, sizeof *row_stamp);
        if (distinct || !shared) { mib_t *m = malloc(sizeof *m); build(m, i); ag[i].m = m; if (!shared) shared = m; }
        else ag[i].m = shared;
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        int sz = 4 << 20;
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &sz, sizeof sz); setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sz, sizeof sz);
        struct sockaddr_in s = {.sin_family = AF_INET};
        inet_pton(AF_INET, baseip, &s.sin_addr);
        if (step_port) s.sin_port = htons(baseport + i);
        else { s.sin_addr.s_addr = htonl(ntohl(s.sin_addr.s_addr) + i); s.sin_port = htons(baseport); }
        if (bind(fd, (struct sockaddr *)&s, sizeof s)) { perror("bind"); return 1; }
        ag[i].fd = fd;
        struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
    }
    if (faults & F_OTHER) {
        other_fd = socket(AF_INET, SOCK_DGRAM, 0);
        struct sockaddr_in s = {.sin_family = AF_INET, .sin_port = htons(baseport)};
        inet_pton(AF_INET, "127.9.9.9", &s.sin_addr);
        if (bind(other_fd, (struct sockaddr *)&s, sizeof s)) { perror("bind other"); return 1; }
    }
    for (int j = 0; j < BATCH; j++) {
        iov[j].iov_base = inbuf[j]; iov[j].iov_len = sizeof inbuf[j];
        mm[j].msg_hdr.msg_iov = &iov[j]; mm[j].msg_hdr.msg_iovlen = 1;
        mm[j].msg_hdr.msg_name = &from[j]; mm[j].msg_hdr.msg_namelen = sizeof from[j];
    }
    if (!quiet) {
        printf("oltsim: %d agent(s) from %s:%d, %d PON x %d ONU, %zu objects each\n", nagents, baseip, baseport, P, K, shared->n);
        fflush(stdout);
    }
    int64_t t0 = now_ns(), next_drift = t0 + DRIFT_NS;
    struct epoll_event ev[256];
    while (!stop) {
        if (dump) { dump = 0; stats(); }
        struct timespec ts, *tp = NULL; int64_t wait = -1;
        if (hn || drift_pct > 0 || run_secs > 0) {
            int64_t t = now_ns();
            while (hn && heap[0].due <= t) {
                pend_t x = hpop();
                ag[x.agent].inq--;
                if (x.len) { xmit(x.agent, x.buf, x.len, &x.to); free(x.buf); }
            }
            if (hn) wait = heap[0].due - t;
            if (drift_pct > 0) {
                if (t >= next_drift) { for (int i = 0; i < nagents; i++) if (i == 0 || distinct) drift(ag[i].m); next_drift = t + DRIFT_NS; }
                if (wait < 0 || wait > next_drift - t) wait = next_drift - t;
            }
            if (run_secs > 0) {
                int64_t left = t0 + (int64_t)(run_secs * 1e9) - t;
                if (left <= 0) break;
                if (wait < 0 || wait > left) wait = left;
            }
        }
        if (wait < 0 || wait > 500000000ll) wait = 500000000ll; /* a signal between the check and the wait is seen at the latest then */
        if (wait >= 0) { ts.tv_sec = wait / 1000000000ll; ts.tv_nsec = wait % 1000000000ll; tp = &ts; }
        int n = epoll_pwait2(ep, ev, 256, tp, NULL);
        for (int i = 0; i < n; i++) serve(ev[i].data.u32);
    }
    stats();
    if (logf_) fclose(logf_);
    return 0;
}
