"""Does memory help when every frame is blank with the same probability, independently? Both arms, by hand.

Run: python examples/flickering_cartpole.py [--arm lstm] [--total-timesteps 500000] [--help]
"""

from hand_written_loop import arguments, main

if __name__ == "__main__":
    parser = arguments("Train with and without memory on a cart-pole whose frames flicker.")
    main(parser, parser.parse_args())
