/**
 * The documentation page at /docs: Swagger UI from our own node_modules. Its own content policy allows what it needs from this host and
 * nothing from any other.
 */
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import express, { Router } from 'express';
import helmet from 'helmet';
import { docPageRoutes } from './doc-pages.ts';
import { getOnly } from './errors.ts';

const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
const SERVED = /^\/(swagger-ui\.css|swagger-ui-bundle\.js|favicon-(16x16|32x32)\.png)$/;

const POLICY = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    // The page sets style attributes while rendering, and inlines its icons.
    styleSrc: ["'self'", "'unsafe-inline'"],
    imgSrc: ["'self'", 'data:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
});

export function docsRoutes(): Router {
  const router = Router();
  router.use(docPageRoutes());
  router.use(POLICY);
  router.get('/', (request, response) => {
    // Relative addresses below need the slash.
    if (!request.originalUrl.split('?')[0]!.endsWith('/')) return response.redirect(301, `${request.baseUrl}/`);
    response.type('html').send(PAGE);
  });
  router.get('/start.js', (_request, response) => void response.type('js').send(START));
  const files = express.static(assets, { index: false, maxAge: '1d' });
  router.get(/.*/, (request, response, next) => (SERVED.test(request.path) ? files(request, response, next) : next()));
  router.all(['/', '/start.js'], getOnly);
  return router;
}

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Farthing API</title>
    <link rel="icon" type="image/png" href="favicon-32x32.png">
    <link rel="stylesheet" href="swagger-ui.css">
  </head>
  <body>
    <div id="docs"></div>
    <script src="swagger-ui-bundle.js"></script>
    <script src="start.js"></script>
  </body>
</html>
`;

/**
 * Without validatorUrl the page would send the document's address to another host. Swagger UI does not show `x-codeSamples`, so a plugin
 * renders them before the answers of their operation.
 */
const START = `const withSamples = (Responses, { React, specSelectors }) => (props) => {
  const element = React.createElement;
  const place = props.specPath.butLast().push('x-codeSamples');
  const samples = specSelectors.specJson().getIn(place, []);
  const shown = samples.map((sample) =>
    element('details', { key: sample.get('label') },
      element('summary', null, sample.get('label')),
      element('pre', { className: 'example microlight', style: { whiteSpace: 'pre-wrap' } }, sample.get('source'))));
  return element('div', null,
    element('div', { className: 'opblock-section-header' }, element('h4', null, 'Code samples')),
    element('div', { className: 'opblock-description-wrapper' }, shown),
    element(Responses, props));
};

SwaggerUIBundle({
  url: '../v1/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  validatorUrl: null,
  persistAuthorization: false,
  plugins: [{ wrapComponents: { responses: withSamples } }],
});
`;
