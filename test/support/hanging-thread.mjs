// A thread of documents that never answers for one of them: what it prints is what it was given.
import { parentPort } from 'node:worker_threads';

parentPort.on('message', ({ id, document }) => {
  if (document !== 'hangs') parentPort.postMessage({ id, bytes: Buffer.from(document) });
});
