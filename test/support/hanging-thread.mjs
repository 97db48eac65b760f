// A worker thread in place of the one that makes documents. It never answers for a document whose first note is
// "hangs". For any other it returns that note, or the id of the thread.
import { parentPort, threadId } from 'node:worker_threads';

parentPort.on('message', ({ id, document }) => {
  const [text] = document.notes;
  if (text !== 'hangs') parentPort.postMessage({ id, bytes: Buffer.from(text === 'which' ? `${threadId}` : text) });
});
