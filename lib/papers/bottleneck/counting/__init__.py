"""How many rankings a layer can realise: arrangements, their regions, and closed forms."""
