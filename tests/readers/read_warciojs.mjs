// Lists the records of segments as warcio.js reads them: its parser, its decoding of payloads.
//
//   read_warciojs.mjs MODULE_FOLDER SEGMENT… >LISTING     columns as in frames.py
//
// Decides nothing: what warcio.js throws ends it with its message.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { createRequire } from "node:module";

const [modules, ...paths] = process.argv.slice(2);
const { WARCParser } = createRequire(modules + "/")("warcio");

for (const path of paths) {
  for await (const record of new WARCParser(createReadStream(path), { keepHeadersCase: false })) {
    const status = ["response", "revisit"].includes(record.warcType) ? record.httpHeaders.statusCode : "";
    const payload = createHash("sha256").update((await record.readFully(true)) ?? "").digest("hex");
    const id = record.warcHeader("WARC-Record-ID");
    console.log([record.warcType, id, record.warcTargetURI ?? "", status, payload].join("\t"));
  }
}
