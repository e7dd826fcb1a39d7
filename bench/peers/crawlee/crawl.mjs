// Crawlee's CheerioCrawler, its fastest for plain HTML, set for throughput: crawl.mjs SEEDS OUT
//
// Decides: what its guides say of speed (https://crawlee.dev/js/docs/guides/scaling-crawlers: concurrency from its high
// end on, no limit of requests a minute), queues in memory and not as one file a request, no sessions, cookies, retries
// or browser-like headers, which serve disguise and not crawling. Links to the page's own host are followed.
// Bodies go to one file, record by record: `LENGTH URL`, the body, a line break.
// Limits: an interrupt ends it in order, by Crawlee's own handler.

import { closeSync, openSync, readFileSync, writevSync } from 'node:fs';
import { CheerioCrawler, Configuration, log, LogLevel } from '@crawlee/cheerio';

const [seeds, out] = process.argv.slice(2);
const file = openSync(out, 'w');
log.setLevel(LogLevel.ERROR);

// systemInfoV2 and the thresholds keep the pool from shrinking because the core is busy, as it shall be here.
const config = new Configuration({ persistStorage: false, memoryMbytes: 4096, systemInfoV2: true });
const crawler = new CheerioCrawler(
    {
        minConcurrency: 32,
        maxConcurrency: 128,
        autoscaledPoolOptions: { maybeRunIntervalSecs: 0.05 },
        maxRequestRetries: 0,
        navigationTimeoutSecs: 120,
        requestHandlerTimeoutSecs: 120,
        useSessionPool: false,
        persistCookiesPerSession: false,
        statusMessageLoggingInterval: 3600,
        preNavigationHooks: [(_context, gotOptions) => { gotOptions.useHeaderGenerator = false; }],
        async requestHandler({ request, body, enqueueLinks }) {
            const bytes = Buffer.from(body);
            writevSync(file, [Buffer.from(`${bytes.length} ${request.loadedUrl}\n`), bytes, Buffer.from('\n')]);
            await enqueueLinks({ selector: 'a[href], area[href]', strategy: 'same-hostname' });
        },
    },
    config,
);
await crawler.run(readFileSync(seeds, 'utf8').trim().split('\n'));
closeSync(file);
