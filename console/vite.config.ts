/** Builds the console. The service replaces `__NONCE__` in index.html at each request (docs/decisions/0034). */
import react from '@vitejs/plugin-react';
import { defineConfig, type HtmlTagDescriptor, type Plugin, type Rolldown } from 'vite';

/** Address of the API while developers work on the console (docs/console.md); the built console is served by the API itself. */
const API = process.env.FARTHING_URL ?? 'http://127.0.0.1:8080';
/** The Host stays that of the page, so that the service recognizes its Origin as its own. */
const PROXY = { target: API, changeOrigin: false };

const MAIN = `${import.meta.dirname}/main.ts`;
const FRAME = `${import.meta.dirname}/shell/frame.tsx`;

type ModuleGraph = { getModuleInfo(id: string): { readonly importers: readonly string[] } | null };

/** Whether the root imports the module, directly or through other modules. Dynamic imports do not count. */
function isImportedBy(root: string, id: string, graph: ModuleGraph): boolean {
  const seen = new Set<string>();
  const isReached = (each: string): boolean => {
    if (each === root) return true;
    if (seen.has(each)) return false;
    seen.add(each);
    return graph.getModuleInfo(each)?.importers.some(isReached) ?? false;
  };
  return isReached(id);
}

/** Fonts of the first page, which a browser would load only when it lays out the first text. */
const FONT = /\/geist(?:-mono)?-latin-wght-normal-[\w-]+\.woff2$/;

/** Preloads what the frame needs in index.html: its scripts and styles, which main.ts imports when it runs, and its fonts. */
function preloadFrame(): Plugin {
  const listTags = (bundle: Rolldown.OutputBundle): HtmlTagDescriptor[] => {
    const chunks = Object.values(bundle).filter((file) => file.type === 'chunk');
    const start = listFiles(bundle, chunks.find(({ isEntry }) => isEntry)!);
    const frame = listFiles(bundle, chunks.find(({ moduleIds }) => moduleIds.includes(FRAME))!);
    const fonts = Object.keys(bundle).filter((file) => FONT.test(file));
    return [...[...frame].filter((file) => !start.has(file)), ...fonts].map(toTag);
  };
  return {
    name: 'preload-frame',
    transformIndexHtml: { order: 'post', handler: (_, { bundle }) => bundle && listTags(bundle) },
  };
}

/** The files of a chunk and of the chunks that it imports. */
function listFiles(bundle: Rolldown.OutputBundle, chunk: Rolldown.OutputChunk, files = new Set<string>()): Set<string> {
  if (files.has(chunk.fileName)) return files;
  files.add(chunk.fileName);
  for (const style of chunk.viteMetadata?.importedCss ?? []) files.add(style);
  for (const name of chunk.imports) listFiles(bundle, bundle[name] as Rolldown.OutputChunk, files);
  return files;
}

function toTag(file: string): HtmlTagDescriptor {
  const kind = { css: { rel: 'stylesheet' }, js: { rel: 'modulepreload' }, woff2: { rel: 'preload', as: 'font' } };
  const attrs = kind[file.slice(file.lastIndexOf('.') + 1) as keyof typeof kind];
  return { tag: 'link', attrs: { ...attrs, crossorigin: true, href: `/${file}` }, injectTo: 'head' };
}

/** Least number of pages that share a module in the file that all pages load. */
const PAGES_MIN = 10;

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), preloadFrame()],
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
    // One file has the modules that many pages share. Without it the first page loads 35 scripts, and a browser loads six at a time. The
    // start, React DOM and the frame have files of their own, so that each is evaluated by itself and none waits for the shared file.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: (id, graph) => (isImportedBy(MAIN, id, graph) ? 'start' : null), priority: 3 },
            { name: 'react-dom', test: /\/node_modules\/(?:react-dom|scheduler)\//, priority: 2 },
            { name: (id, graph) => (isImportedBy(FRAME, id, graph) ? 'frame' : null), priority: 1 },
            { name: 'shared', minShareCount: PAGES_MIN },
          ],
        },
      },
    },
  },
  server: { port: 5173, proxy: { '/v1': PROXY, '/docs': PROXY } },
});
