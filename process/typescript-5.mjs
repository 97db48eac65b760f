/** Resolves `typescript` to version 5, the last one with the programming interface that openapi-typescript needs. */
export const resolve = (specifier, context, next) =>
  next(specifier === 'typescript' ? 'typescript-5' : specifier, context);
