/**
 * Parameters of Chargebee: form fields, with brackets for nested objects, and an index after the field of a listed object:
 * `customer[id]`, `charges[amount][0]`, `id[in]=["a","b"]` (apidocs.chargebee.com, "Input parameters").
 */

type FormText = string | number | boolean;
type FormFields = { readonly [name: string]: FormText | undefined };
/** Undefined fields are omitted. */
export type Form = { readonly [name: string]: FormText | FormFields | readonly FormFields[] | undefined };

export function encodeForm(form: Form): URLSearchParams {
  const encoded = new URLSearchParams();
  const append = (name: string, value: FormText | undefined) => {
    if (value !== undefined) encoded.append(name, String(value));
  };
  for (const [name, value] of Object.entries(form)) {
    if (isList(value))
      value.forEach((fields, index) => {
        for (const [field, text] of Object.entries(fields)) append(`${name}[${field}][${index}]`, text);
      });
    else if (typeof value === 'object')
      for (const [field, text] of Object.entries(value)) append(`${name}[${field}]`, text);
    else append(name, value);
  }
  return encoded;
}

/** `Array.isArray` does not recognize read-only lists. */
function isList(value: Form[string]): value is readonly FormFields[] {
  return Array.isArray(value);
}
