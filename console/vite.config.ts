/** Builds the console. The service replaces `__NONCE__` in index.html at each request (docs/decisions/0034). */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Address of the API while developers work on the console (docs/console.md); the built console is served by the API itself. */
const API = process.env.FARTHING_URL ?? 'http://127.0.0.1:8080';
/** The Host stays that of the page, so that the service recognizes its Origin as its own. */
const PROXY = { target: API, changeOrigin: false };

/** Least number of pages that share a module in the file that all pages load. */
const PAGES_MIN = 10;

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  // The verifier of invoices runs in the browser, too, without the parts of Node that it has for files.
  resolve: {
    alias: [
      {
        find: /^node:(crypto|fs|readline|url)$/,
        replacement: `${import.meta.dirname}/pages/invoices/proof/node-parts.ts`,
      },
    ],
  },
  html: { cspNonce: '__NONCE__' },
  build: {
    outDir: '../console-dist/next',
    emptyOutDir: true,
    // Fonts stay files: the content security policy allows no data addresses for them.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    // One file has the modules that many pages share. Without it the first page loads 35 scripts, and a browser loads six at a time.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: PAGES_MIN }] } } },
  },
  server: { port: 5173, proxy: { '/v1': PROXY, '/docs': PROXY } },
});
