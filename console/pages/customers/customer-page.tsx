import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function CustomerPage(): ReactNode {
  return <PageHead title="CustomerPage" />;
}
