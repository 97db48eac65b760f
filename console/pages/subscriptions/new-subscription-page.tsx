import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function NewSubscriptionPage(): ReactNode {
  return <PageHead title="NewSubscriptionPage" />;
}
