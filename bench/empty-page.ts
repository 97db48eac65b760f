/** React with one heading, built by vite and served as the console is: the floor of its first page. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import express from 'express';
import { build } from 'vite';
import { serveConsole } from '../api/http/console.ts';
import { readConfig } from '../config.ts';
import { ROOT } from '../process/console-files.ts';

const PAGE = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8" /><title>Empty</title></head>
  <body><div id="root"></div><script type="module" src="/main.jsx"></script></body>
</html>
`;
const SCRIPT = `import { createRoot } from 'react-dom/client';
createRoot(document.getElementById('root')).render(<main><h1>Empty</h1></main>);
`;

export type EmptyPage = { readonly url: string; stop(): void };

export async function startEmptyPage(): Promise<EmptyPage> {
  // Below the build folder of the console, which is not in git, so that its imports find the packages.
  mkdirSync(join(ROOT, 'console-dist'), { recursive: true });
  const root = mkdtempSync(join(ROOT, 'console-dist', '.empty-'));
  const folder = join(root, 'dist');
  try {
    writeFileSync(join(root, 'index.html'), PAGE);
    writeFileSync(join(root, 'main.jsx'), SCRIPT);
    await build({
      ...{ root, configFile: false, logLevel: 'silent' as const, plugins: [react()] },
      html: { cspNonce: '__NONCE__' },
      build: { outDir: folder },
    });
    for (const name of readdirSync(join(folder, 'assets')))
      writeFileSync(
        join(folder, 'assets', `${name}.br`),
        brotliCompressSync(readFileSync(join(folder, 'assets', name))),
      );
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
  const app = express();
  app.use(serveConsole({ console: { find: () => ({ folder }) }, config: readConfig({}) }));
  const server = createServer(app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
    rmSync(root, { recursive: true, force: true });
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}
