/**
 * Parameters of requests to Stripe's fake: a form with bracketed names (docs.stripe.com/api, "Introduction"), checked against a grammar. Unknown and
 * missing parameters are refused (docs.stripe.com/error-codes, `parameter_unknown`, `parameter_missing`, `parameter_invalid_integer`).
 */
import { StripeRefusal } from './stripe-fake-refusal.ts';

export type Parsed = string | number | boolean | Parsed[] | { [name: string]: Parsed };
export type Parameters = { [name: string]: Parsed };

type Kind = 'text' | 'integer' | 'flag' | 'map' | readonly string[] | Grammar | { readonly list_of: Kind };
/** Parameters of an operation; a name that ends in `!` is required. */
export type Grammar = { readonly [name: string]: Kind };

type Node = string | { [name: string]: Node };

/** Parses `lines[0][amount]=5&expand[]=x` to nested records; an unnamed index counts up. */
export function parseForm(text: string): { [name: string]: Node } {
  const form: { [name: string]: Node } = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    const path = name.split('[').map((part) => part.replace(/\]$/, ''));
    let at: { [name: string]: Node } = form;
    for (const part of path.slice(0, -1)) {
      const next = at[part] ?? Object.create(null);
      if (typeof next === 'string')
        throw new StripeRefusal(400, { message: `Invalid parameter: ${name}`, param: name });
      at[part] = next;
      at = next;
    }
    const last = path.at(-1)!;
    at[last === '' ? String(Object.keys(at).length) : last] = value;
  }
  return form;
}

export function checkParameters(form: { [name: string]: Node }, grammar: Grammar, within = ''): Parameters {
  const kinds = new Map(
    Object.entries({ ...grammar, ...(within === '' ? { expand: { list_of: 'text' } as Kind } : {}) }),
  );
  const checked: Parameters = {};
  for (const [name, node] of Object.entries(form)) {
    const path = within === '' ? name : `${within}[${name}]`;
    const kind = kinds.get(name) ?? kinds.get(`${name}!`);
    if (kind === undefined)
      throw new StripeRefusal(400, {
        code: 'parameter_unknown',
        message: `Received unknown parameter: ${path}`,
        param: path,
      });
    checked[name] = checkParameter(node, kind, path);
  }
  for (const name of kinds.keys())
    if (name.endsWith('!') && checked[name.slice(0, -1)] === undefined)
      throw missingParameter(name.slice(0, -1), within);
  return checked;
}

function missingParameter(name: string, within: string): StripeRefusal {
  const param = within === '' ? name : `${within}[${name}]`;
  return new StripeRefusal(400, { code: 'parameter_missing', message: `Missing required param: ${param}.`, param });
}

function checkParameter(node: Node, kind: Kind, param: string): Parsed {
  if (typeof kind === 'object' && !Array.isArray(kind)) {
    // An empty text deletes a list or a record.
    if (node === '') return '';
    if (typeof node === 'string') throw new StripeRefusal(400, { message: `Invalid object: ${param}`, param });
    if ('list_of' in kind)
      return Object.keys(node)
        .sort((a, b) => Number(a) - Number(b))
        .map((index) => checkParameter(node[index]!, kind.list_of as Kind, `${param}[${index}]`));
    return checkParameters(node, kind as Grammar, param);
  }
  if (kind === 'map') return node as Parsed;
  if (typeof node !== 'string') throw new StripeRefusal(400, { message: `Invalid string: ${param}`, param });
  return checkText(node, kind as 'text' | 'integer' | 'flag' | readonly string[], param);
}

function checkText(text: string, kind: 'text' | 'integer' | 'flag' | readonly string[], param: string): Parsed {
  if (kind === 'integer') {
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(Number(text)))
      throw new StripeRefusal(400, { code: 'parameter_invalid_integer', message: `Invalid integer: ${text}`, param });
    return Number(text);
  }
  if (kind === 'flag') {
    if (text !== 'true' && text !== 'false')
      throw new StripeRefusal(400, { message: `Invalid boolean: ${text}`, param });
    return text === 'true';
  }
  if (kind !== 'text' && !kind.includes(text))
    throw new StripeRefusal(400, { message: `Invalid ${param}: must be one of ${kind.join(', ')}`, param });
  return text;
}
