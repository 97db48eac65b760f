// Browser part of /docs/. Swagger UI needs seconds of CPU for the document of all operations, so it gets the document of one tag, when a
// reader opens that tag. The address is `#/<tag>/<operation>`.
const introduction = document.getElementById('introduction');
const panel = document.getElementById('operations');
const tags = new Map([...document.querySelectorAll('nav details')].map((item) => [item.dataset.tag, item]));

// Tag → its element and its Swagger UI.
const views = new Map();
// Credentials of the button "Authorize", for the tags that are opened later.
let authorized = {};
let library;

window.addEventListener('hashchange', () => void show());
document.getElementById('filter').addEventListener('input', ({ target }) => filter(target.value.trim().toLowerCase()));
void show();

async function show() {
  const address = decodeURIComponent(location.hash);
  const [, tag] = address.split('/');
  const item = tags.get(tag);
  introduction.hidden = item !== undefined;
  panel.hidden = item === undefined;
  for (const [name, { element }] of views) element.hidden = name !== tag;
  if (item === undefined) return;
  item.open = true;
  if (views.has(tag)) views.get(tag).ui.layoutActions.parseDeepLinkHash(address);
  else await open(tag, item.dataset.document);
}

async function open(tag, url) {
  const SwaggerUIBundle = await loadLibrary();
  if (views.has(tag)) return;
  const element = panel.appendChild(document.createElement('div'));
  const ui = SwaggerUIBundle({
    url,
    domNode: element,
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    // Without it the page would send the address of the document to another host.
    validatorUrl: null,
    persistAuthorization: false,
    // It takes longer to colour an example than to show it.
    syntaxHighlight: { activated: false },
    // The cookie of the console on this host would be refused beside a key.
    requestInterceptor: (request) => Object.assign(request, { credentials: 'omit' }),
    plugins: [
      { wrapComponents: { responses: withSamples, info: () => () => null } },
      { statePlugins: { auth } },
      { fn: { resolveSubtree } },
    ],
    onComplete: () => Object.keys(authorized).length > 0 && ui.authActions.authorize(authorized),
  });
  views.set(tag, { element, ui });
}

// Replaces the resolver of Swagger UI, which reads the whole document for seconds. All references of our documents are local.
async function resolveSubtree(document, path) {
  const part = path.reduce((found, key) => found?.[key], document);
  return { spec: inlineReferences(part, document, []), errors: [] };
}

function inlineReferences(value, document, within) {
  if (Array.isArray(value)) return value.map((item) => inlineReferences(item, document, within));
  if (value === null || typeof value !== 'object') return value;
  const { $ref } = value;
  if (typeof $ref !== 'string')
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, inlineReferences(item, document, within)]),
    );
  // A record that contains itself.
  if (within.includes($ref)) return value;
  const found = $ref
    .slice(2)
    .split('/')
    .reduce((part, key) => part[key], document);
  return inlineReferences({ ...found, $$ref: $ref }, document, [...within, $ref]);
}

function loadLibrary() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = 'swagger-ui-bundle.js';
    script.onload = () => resolve(window.SwaggerUIBundle);
    script.onerror = reject;
    document.head.append(script);
  });
  return library;
}

const auth = {
  wrapActions: {
    authorize: (action) => (payload) => {
      authorized = { ...authorized, ...payload };
      return action(payload);
    },
    logout: (action) => (names) => {
      for (const name of names) delete authorized[name];
      return action(names);
    },
  },
};

// Swagger UI does not show `x-codeSamples`, so they are rendered before the answers of their operation.
const withSamples =
  (Responses, { React, specSelectors }) =>
  (props) => {
    const element = React.createElement;
    const place = props.specPath.butLast().push('x-codeSamples');
    const samples = specSelectors.specJson().getIn(place, []);
    const shown = samples.map((sample) =>
      element(
        'details',
        { key: sample.get('label') },
        element('summary', null, sample.get('label')),
        element('pre', { className: 'example microlight', style: { whiteSpace: 'pre-wrap' } }, sample.get('source')),
      ),
    );
    return element(
      'div',
      null,
      element('div', { className: 'opblock-section-header' }, element('h4', null, 'Code samples')),
      element('div', { className: 'opblock-description-wrapper' }, shown),
      element(Responses, props),
    );
  };

function filter(text) {
  for (const item of tags.values()) {
    const links = [...item.querySelectorAll('a')];
    for (const link of links) link.hidden = !link.textContent.toLowerCase().includes(text);
    const isFound = links.some((link) => !link.hidden);
    item.hidden = !isFound;
    item.open = text !== '' && isFound;
  }
}
