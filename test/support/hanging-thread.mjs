// A thread of documents that never answers for one of them: what it prints is the first of their notes, or which thread it is.
import { parentPort, threadId } from 'node:worker_threads';

parentPort.on('message', ({ id, document }) => {
  const [text] = document.notes;
  if (text !== 'hangs') parentPort.postMessage({ id, bytes: Buffer.from(text === 'which' ? `${threadId}` : text) });
});
