/** The catalogue of services, by whose names targets are set. */
import { useQuery } from '@tanstack/react-query';
import { client } from '../../session/console-client.ts';

export function useCatalogue() {
  const { data = [] } = useQuery({
    queryKey: ['services'],
    queryFn: ({ signal }) => client.services({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data;
}

/** Those that need nothing but their name. */
export const useServices = () =>
  useCatalogue().filter(({ unsupported, needs_host }) => unsupported === null && !needs_host);
