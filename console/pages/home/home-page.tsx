/** Home. An environment without an invoice is on its way to the first one, and its home is that way. */
import { useQuery } from '@tanstack/react-query';
import { Navigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { can, useSession } from '../../client/session.ts';
import { Loading } from '../../components/states.tsx';
import { Overview } from './overview.tsx';
import { recentInvoicesQuery } from './queries.ts';

export function HomePage(): ReactNode {
  const session = useSession();
  const mayRead = can(session, 'invoice', 'read');
  const invoices = useQuery({ ...recentInvoicesQuery, enabled: mayRead });
  if (mayRead && invoices.isPending) return <Loading />;
  // A redirect, because the first invoice appears while the steps are still being taken.
  if (invoices.data?.items?.length === 0)
    return <Navigate from="/env/$environment_id" to="/env/$environment_id/first-bill" replace />;
  return <Overview />;
}
